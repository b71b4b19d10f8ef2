// Interval timers: a signal at a time on some clock, once or again and again.
// What alarm, setitimer and timer_create are made of.
//
// A task's timers are guarded by its cpu_timers.lock (interrupt-disabling),
// whatever their clock.
//
// When a timer expires while its last signal has not been taken yet, or is
// ignored, the next one comes a millisecond later at the earliest: nobody can
// drown the machine in interrupts by a short interval. What is left out, by
// this or because the interrupt came late, is counted as overruns.
#pragma once

#include "kernel/task/cpu_timer.h"
#include "kernel/task/signal.h"
#include "kernel/time/callout.h"

enum itimer_clock {
    ITIMER_ON_UPTIME,
    ITIMER_ON_WALL, // follows the wall clock when that is set
    ITIMER_ON_CPU,  // as its cpu_timer says
};

struct itimer {
    struct task *task;
    enum itimer_clock clock;
    u64 next;          // when it expires, on its clock, ns; 0: it is off
    u64 interval;      // 0: once
    bool used;         // it has been set at least once
    struct thread *to; // gets the signal; NULL: the task; referenced by others
    struct siginfo info;
    u32 overrun;        // expiries since the last signal that brought none
    u32 overrun_before; // likewise, of the signal before that one
    struct callout callout;
    struct cpu_timer cpu;
    struct list wall_node; // in the list of all that are on the wall clock
};

// Off. Sends `info` (its signo 0: nothing).
void itimer_init(struct itimer *t, struct task *task,
                 const struct siginfo *info);
// On the CPU time of the task or of one thread, from now on.
void itimer_use_cpu(struct itimer *t, enum cpu_clock clock,
                    struct thread *thread);
// Waits until the signal is through that it may be sending; off then. Without
// the lock, thread context.
void itimer_end(struct itimer *t);

// With the lock held.
u64 itimer_now(const struct itimer *t);
// Expiries that brought no signal of their own until the last one was taken.
u32 itimer_overrun(const struct itimer *t);
// `next` 0: off. After a timer on CPU time: cpu_timers_changed().
void itimer_set(struct itimer *t, u64 next, u64 interval);
// Nanoseconds to the next expiry, at least 1; 0: it is off.
u64 itimer_left(const struct itimer *t);
