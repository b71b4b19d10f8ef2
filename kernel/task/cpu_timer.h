// CPU timers: a handler is called when a task, or one of its threads, has
// consumed a given amount of CPU time, to the nanosecond, by the ledger.
//
// While a thread of a task with CPU timers runs, a callout of its CPU is set to
// the earliest time at which a timer can be due: the remaining time divided by
// the number of CPUs on which the task can run at once. The callout computes it
// again. So nothing is sampled, and there is no tick while the task does not
// run.
//
// A task's timers are guarded by the lock of its struct cpu_timers. It is also
// held around the handlers: after cpu_timer_stop the handler is not running.
// Order: this lock, then tasks_lock.
#pragma once

#include "kernel/sync/spinlock.h"

struct task;
struct thread;

// Whether context switches are reported for a task's timers.
enum cpu_timers_phase { CPU_TIMERS_NONE, CPU_TIMERS_LISTEN, CPU_TIMERS_END };

struct cpu_timers { // of a task
    struct spinlock lock;
    struct list list;
    struct list ignored; // itimers that are not armed, because of their signal
    bool active;         // may have timers; marked access
    u32 phase;           // enum cpu_timers_phase; atomic
};

enum cpu_clock {
    CPU_TIME_USER, // user mode only
    CPU_TIME_ALL,
};

struct cpu_timer {
    struct list node;
    u64 at;                // expiry, in ns of its clock
    struct thread *thread; // CPU time of this thread; NULL: of the whole task
    enum cpu_clock clock;
    // In interrupt context. May set this timer again, but no other timer.
    void (*fn)(struct cpu_timer *timer);
};

void cpu_timers_init(struct cpu_timers *timers);
// The task has timers that are set, or are about to be: from now on they are
// seen at context switches. As cpu_timers_end; cpu_timers_changed does it, too.
void cpu_timers_begin(struct cpu_timers *timers);
// The task is ending: no timer is set any more. Thread context, no spin locks;
// may sleep.
void cpu_timers_end(struct cpu_timers *timers);
void cpu_timer_init(struct cpu_timer *timer, enum cpu_clock clock,
                    struct thread *thread, void (*fn)(struct cpu_timer *timer));

// Value of the clock of a timer of `t`, in ns.
u64 cpu_timer_now(struct task *t, const struct cpu_timer *timer);

// With the lock held. A time in the past is allowed.
void cpu_timer_set(struct task *t, struct cpu_timer *timer, u64 at);
void cpu_timer_stop(struct cpu_timer *timer);
// Call after setting timers of a task, without the lock, interrupts on: updates
// the callouts of all CPUs on which the task runs. Handlers need not call it.
void cpu_timers_changed(struct task *t);
