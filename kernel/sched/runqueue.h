// A CPU's run queue; private to kernel/sched.
#pragma once

#include "kernel/sched/thread.h"

struct run_queue {
    // Guards all below and the scheduling fields of threads whose `cpu` is this
    // one. Held across arch_switch, so whoever holds it knows that a thread on
    // these lists is not using its stack. Two at once: the lower CPU id first.
    struct spinlock lock;
    u32 bitmap; // levels that have a thread
    struct list levels[PRIORITY_LEVELS];
    u32 count; // threads on the levels
    struct thread *running, *idle;
    u64 started;    // when `running` got the CPU (clock_now_ns)
    u64 slice_end;  // when its slice is over
    u64 last_batch; // when a thread of PRIORITY_BATCH last got the CPU
    bool slice_armed;
    struct timeout slice;
    struct cpu *moving_to; // where the thread being switched out goes
    u32 expiries;
    u64 switches;
    struct cpu *cpu;
};

// Levels. Kernel threads first; then threads that sleep more than they run;
// then those that use their slices up.
#define PRIORITY_KERNEL 1
#define PRIORITY_INTERACTIVE 8
#define PRIORITY_BATCH 16

extern struct run_queue run_queues[CPU_MAX];

u64 slice_length(const struct thread *t);
// Which CPU a thread that becomes ready should go to.
struct cpu *balance_choose(struct thread *t, struct cpu *last);
// Takes a ready thread from the longest queue for an idle CPU; `rq` locked, may
// be unlocked meanwhile. NULL: nothing to take.
struct thread *balance_steal(struct run_queue *rq);
// The running thread's slice is over: the CPU where it should go on.
struct cpu *balance_expired(struct run_queue *rq);

void run_queue_init(struct run_queue *rq, struct cpu *cpu);
// With the lock held:
void run_queue_add(struct run_queue *rq, struct thread *t, bool front);
void run_queue_remove(struct run_queue *rq, struct thread *t);
// Somebody waits behind the running thread: its slice must end in time.
void run_queue_arm_slice(struct run_queue *rq);
// Adds a thread that is on no list and kicks the CPU if it should switch.
void run_queue_make_ready(struct run_queue *rq, struct thread *t);
// Without it: queues a ready thread that is on no list and uses no stack.
// Interrupts off.
void run_queue_place(struct thread *t, struct cpu *target);
