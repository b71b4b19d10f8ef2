// A CPU's run queue; private to kernel/sched.
#pragma once

#include "kernel/sched/thread.h"
#include "kernel/trace/point.h"
#include "lib/branch.h"

struct run_queue {
    // Guards all fields below and the scheduling fields of threads whose `cpu`
    // is this CPU. Held across arch_switch: to the lock's holder, a thread on
    // these lists is not using its stack. Two at once: lower CPU id first.
    struct spinlock lock;
    u32 bitmap;                          // levels that have a thread
    struct list levels[PRIORITY_LEVELS]; // batch: in order of virtual time
    u32 count;                           // threads on the levels
    u32 level; // of `running`; other CPUs read it without the lock
    struct thread *running, *idle;
    u64 started; // when `running` got the CPU (its TSC)
    // Anti-starvation: some level is passed over for a more urgent one; one
    // such level gets a turn at `turn_due` (TSC).
    bool overtaking;
    u64 turn_due;
    u64 turn_end; // of the last turn: a short slice after it began
    u32 turn;     // the level that got it
    bool in_turn; // `running` has a part of it: until its end, unpreempted
    u64 floor;    // least virtual time of the batch threads
    u32 sharers; // fair=user: competing threads of the user of `running`, if it
                 // is a batch thread, when it got the CPU
    u64 frame;   // global virtual time - local (balance.c)
    u32 push_candidate; // the CPU that balance_push tried last
    bool slice_armed;
    struct callout slice;
    struct cpu *moving_to; // new CPU of the thread being switched out, or NULL
    u64 switches;
    struct cpu *cpu;
};

// Levels between those of kernel threads and of the idle thread, most urgent
// first: interactive threads, which sleep more than they run, by their score;
// batch threads.
#define PRIORITY_INTERACTIVE 8u
#define INTERACTIVE_LEVELS 8u
#define PRIORITY_BATCH 16u

// A thread's history is kept in units of 64 TSC cycles, so that seconds fit
// into 32 bits. A negative time counts as 0: the CPUs' TSCs may differ.
#define HISTORY_SHIFT 6
static inline u32 history_units(u64 cycles)
{
    if (unlikely(cycles >> (32 + HISTORY_SHIFT)))
        return (s64)cycles < 0 ? 0 : INTERACTIVITY_LIMIT_MAX;
    return (u32)(cycles >> HISTORY_SHIFT);
}

// The scheduler's times, computed once; in TSC cycles except the first two.
struct sched_cycles {
    u32 history;   // history kept of a thread, in history units
    u32 inherited; // history that a new thread inherits, in history units
    u32 slice_batch, slice_short, turn_wait, lead_max, lag_max;
};
extern struct sched_cycles sched_cycles;

extern struct run_queue *run_queues[CPU_MAX];

static inline bool run_queue_idle(const struct run_queue *rq)
{
    return READ_ONCE(rq->level) == PRIORITY_IDLE;
}

// The waiting batch thread with the least virtual time, or NULL. The lock is
// held.
static inline struct thread *run_queue_first_batch(const struct run_queue *rq)
{
    const struct list *batch = &rq->levels[PRIORITY_BATCH];
    return list_empty(batch) ? NULL
                             : list_first(batch, struct thread, run_node);
}

// Chooses the CPU for a thread that becomes ready. Any context.
struct cpu *balance_choose_of_many(const struct thread *t, struct cpu *last);
static inline struct cpu *balance_choose(const struct thread *t,
                                         struct cpu *last)
{
    return cpu_count == 1 ? last : balance_choose_of_many(t, last);
}
// Takes a ready thread from the longest queue for an idle CPU; `rq` locked.
// NULL: nothing to take.
struct thread *balance_steal(struct run_queue *rq);
// At the end of `prev`'s slice, after the next thread was chosen: pushes the
// waiting batch thread with the least virtual time to another CPU if it is
// served better there. `rq` locked.
void balance_push(struct run_queue *rq, struct thread *prev);

extern struct branch sched_by_user; // fair=user: each user thread has a share
void sched_by_user_init(void);      // once, before sched_cycles_init
void sched_cycles_init(void);
void run_queue_init(struct run_queue *rq, struct cpu *cpu);
// Locks the queue that guards the thread's fields: that of its CPU, which may
// change until the lock is held. Interrupts off.
struct run_queue *run_queue_lock_of(const struct thread *t);

// With the lock held:
void run_queue_add(struct run_queue *rq, struct thread *t, bool front);
static inline void run_queue_remove(struct run_queue *rq, struct thread *t)
{
    u32 level = t->priority;
    list_remove(&t->run_node);
    if (list_empty(&rq->levels[level]))
        rq->bitmap &= ~(1u << level);
    ADD_ONCE(rq->count, -1);
}
// Converts the virtual time of a thread that moves between two queues. Both are
// locked; the thread is on no list. It keeps its global virtual time relative
// to the new queue's floor, within LAG_MAX: further ahead it would starve,
// further behind it would starve other threads.
void run_queue_rebase(const struct run_queue *from, const struct run_queue *to,
                      struct thread *t);
// Sets the thread's CPU, and counts a migration if it changes.
static inline void run_queue_assign(struct thread *t, struct cpu *cpu)
{
    TRACE_IF(sched_migrate, t->cpu != cpu, .thread = t->tid, .from = t->cpu->id,
             .to = cpu->id);
    if (t->cpu != cpu)
        WRITE_ONCE(t->migrations, t->migrations + 1);
    WRITE_ONCE(t->cpu, cpu);
}
// Whether the running thread's slice is over.
bool run_queue_expired(const struct run_queue *rq);
// Arms the callout that ends the running thread's slice: a thread waits.
void run_queue_arm_slice(struct run_queue *rq);
// Adds a thread that is on no list. Sends the CPU a reschedule interrupt if it
// should switch or time a slice.
void run_queue_make_ready(struct run_queue *rq, struct thread *t);
// Without the lock held: queues a thread that is on no list, whose stack is not
// in use and that cannot be woken. Interrupts off.
void run_queue_place(struct thread *t, struct cpu *target);
