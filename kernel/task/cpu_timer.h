// CPU timers: something that happens when a task, or one of its threads, has
// had so much CPU time, to the nanosecond, by the ledger.
//
// While a thread of a task with CPU timers runs, a callout of its CPU is set to
// the earliest moment at which one can be due: what is left divided by the CPUs
// on which the task can run at once. There it is reckoned again. So nothing is
// sampled, and nothing ticks while the task does not run.
//
// The timers of a task are guarded by the lock of struct cpu_timers, which is
// held around the handlers too: after cpu_timer_stop none runs. Order: this
// lock, then tasks_lock.
#pragma once

#include "kernel/sync/spinlock.h"

struct task;
struct thread;

struct cpu_timers { // a task's
    struct spinlock lock;
    struct list list;
    bool active; // there may be some: one of switch_watchers; marked
};

enum cpu_clock {
    CPU_TIME_USER, // user mode only
    CPU_TIME_ALL,
};

struct cpu_timer {
    struct list node;
    u64 at;                // ns of its clock
    struct thread *thread; // only what this one has; NULL: the whole task
    enum cpu_clock clock;
    // In interrupt context. May set this timer again, no others.
    void (*fn)(struct cpu_timer *timer);
};

void cpu_timers_init(struct cpu_timers *timers);
// Its task has ended, and has none any more.
void cpu_timers_end(struct cpu_timers *timers);
void cpu_timer_init(struct cpu_timer *timer, enum cpu_clock clock,
                    struct thread *thread, void (*fn)(struct cpu_timer *timer));

// What the clock of a timer of `t` shows, ns.
u64 cpu_timer_now(struct task *t, const struct cpu_timer *timer);

// With the lock held. A time that is over is legal.
void cpu_timer_set(struct task *t, struct cpu_timer *timer, u64 at);
void cpu_timer_stop(struct cpu_timer *timer);
// After timers of a task were set, without the lock, interrupts on: all CPUs on
// which it runs take notice. Handlers need not call it.
void cpu_timers_changed(struct task *t);
