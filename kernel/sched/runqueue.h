// A CPU's run queue; private to kernel/sched.
#pragma once

#include "kernel/sched/thread.h"

struct run_queue {
    // Guards all below and the scheduling fields of threads whose `cpu` is this
    // one. Held across arch_switch, so whoever holds it knows that a thread on
    // these lists is not using its stack. Two at once: the lower CPU id first.
    struct spinlock lock;
    u32 bitmap;                          // levels that have a thread
    struct list levels[PRIORITY_LEVELS]; // batch: in order of virtual time
    u32 count;                           // threads on the levels
    u32 level; // of `running`; others read it without the lock
    struct thread *running, *idle;
    u64 started; // when `running` got the CPU (its TSC)
    // Levels are passed over for more urgent ones, until then (TSC).
    bool passing;
    u64 patience;
    u32 turn;     // the level that was served last because patience was over
    bool in_turn; // `running` is of that level: not preempted in its slice
    u64 floor;    // virtual time where the batch threads are, at least
    u64 frame;    // global virtual time - local (balance.c)
    u32 compared; // the CPU that balance_push looked at last
    bool slice_armed;
    struct callout slice;
    struct cpu *moving_to; // where the thread being switched out goes
    u64 switches;
    struct cpu *cpu;
};

// Levels. Kernel threads first; then threads that sleep more than they run, by
// their score; then the others. The idle thread's is the last.
#define PRIORITY_KERNEL 1u
#define PRIORITY_INTERACTIVE 8u
#define INTERACTIVE_LEVELS 8u
#define PRIORITY_BATCH 16u
#define PRIORITY_IDLE (PRIORITY_LEVELS - 1u)

// A thread's history is kept in units of 64 cycles, so that seconds fit. What
// is negative, for the CPUs' TSCs may differ, is none.
#define HISTORY_SHIFT 6
static inline u32 history_units(u64 cycles)
{
    if (unlikely(cycles >> (32 + HISTORY_SHIFT)))
        return (s64)cycles < 0 ? 0 : INTERACTIVITY_LIMIT_MAX;
    return (u32)(cycles >> HISTORY_SHIFT);
}

// The scheduler's times, computed once; in TSC cycles but for the first two.
struct sched_cycles {
    u32 history;   // how much of a thread's past counts: history units
    u32 inherited; // how much of it a new thread takes over: the same
    u32 slice_batch, slice_short, patience, lead_max, lag_max;
};
extern struct sched_cycles sched_cycles;

extern struct run_queue run_queues[CPU_MAX];

static inline bool run_queue_idle(const struct run_queue *rq)
{
    return READ_ONCE(rq->level) == PRIORITY_IDLE;
}

// The batch thread that has had least. The lock is held.
static inline struct thread *run_queue_first_batch(const struct run_queue *rq)
{
    const struct list *batch = &rq->levels[PRIORITY_BATCH];
    return list_empty(batch) ? NULL
                             : list_first(batch, struct thread, run_node);
}

// Which CPU a thread that becomes ready should go to. Any context.
struct cpu *balance_choose_of_many(const struct thread *t, struct cpu *last);
static inline struct cpu *balance_choose(const struct thread *t,
                                         struct cpu *last)
{
    return cpu_count == 1 ? last : balance_choose_of_many(t, last);
}
// Takes a ready thread from the longest queue for an idle CPU; `rq` locked.
// NULL: nothing to take.
struct thread *balance_steal(struct run_queue *rq);
// A slice is over here, `prev`'s, and it is known who runs next: of those who
// wait, the one who has had least may be better off elsewhere, and is sent
// there. `rq` locked.
void balance_push(struct run_queue *rq, struct thread *prev);

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
// A thread comes from one queue to the other, both locked, and is on no list:
// its virtual time. What it is ahead or behind in global terms it keeps, within
// bounds: else it would be starved, or starve others.
void run_queue_rebase(const struct run_queue *from, const struct run_queue *to,
                      struct thread *t);
// It goes to another CPU, or stays. The queue's lock is held.
static inline void run_queue_assign(struct thread *t, struct cpu *cpu)
{
    if (t->cpu != cpu)
        WRITE_ONCE(t->migrations, t->migrations + 1);
    WRITE_ONCE(t->cpu, cpu);
}
// Is the running thread's slice over?
bool run_queue_expired(const struct run_queue *rq);
// Somebody waits behind the running thread: its slice must end in time.
void run_queue_arm_slice(struct run_queue *rq);
// Adds a thread that is on no list and kicks the CPU if it should switch.
void run_queue_make_ready(struct run_queue *rq, struct thread *t);
// Without it: queues a thread that is on no list, uses no stack and that nobody
// else can wake. Interrupts off.
void run_queue_place(struct thread *t, struct cpu *target);
