// Interval timers: send a signal at a time on some clock, once or periodically.
// The basis of alarm, setitimer and timer_create.
//
// A task's timers, of any clock, are guarded by its cpu_timers.lock
// (interrupt-disabling).
//
// A short interval must not flood the machine with interrupts:
// - If a timer expires while its last signal is still pending, the next expiry
//   is 1 ms later at the earliest.
// - If its signal is ignored, it is not armed again until the signal's action
//   changes (itimers_signal_matters).
// - The time in interrupts of all timers of a user other than root is bounded,
//   by delays (itimer.c).
// Expiries skipped by these rules, or because the interrupt was late, are
// counted as overruns.
#pragma once

#include "kernel/task/cpu_timer.h"
#include "kernel/task/signal.h"
#include "kernel/time/callout.h"

enum itimer_clock {
    ITIMER_ON_UPTIME,
    ITIMER_ON_WALL, // follows the wall clock when that is set
    ITIMER_ON_CPU,  // the CPU clock of its cpu_timer
};

struct itimer {
    struct task *task;
    enum itimer_clock clock;
    u64 next;          // when it expires, on its clock, ns; 0: it is off
    u64 interval;      // 0: once
    bool used;         // was set at least once
    struct thread *to; // gets the signal; NULL: the task. No reference of its
                       // own: the timer's user holds one
    struct siginfo info;
    u32 overrun;        // expiries without a signal, for the last signal
    u32 overrun_before; // the same, for the signal before
    struct callout callout;
    struct cpu_timer cpu;
    struct list wall_node;    // in the list of all timers on the wall clock
    struct list ignored_node; // in cpu_timers.ignored; else empty
};

// The timer is off. It will send `info` (signo 0: no signal).
void itimer_init(struct itimer *t, struct task *task,
                 const struct siginfo *info);
// Makes the timer use a CPU clock: of the task, or of `thread`.
void itimer_use_cpu(struct itimer *t, enum cpu_clock clock,
                    struct thread *thread);
// Turns the timer off, and waits for a callout that is running concurrently.
// Without the lock, thread context.
void itimer_end(struct itimer *t);

// With the lock held.
u64 itimer_now(const struct itimer *t);
// timer_getoverrun: expiries without a signal of their own before the signal
// that was taken last.
u32 itimer_overrun(const struct itimer *t);
// `next` 0: off. Call cpu_timers_changed() after setting a timer on CPU time.
void itimer_set(struct itimer *t, u64 next, u64 interval);
// The current task no longer ignores the signal: arms the timers that have it.
// Without the lock, thread context.
void itimers_signal_matters(int sig);
// Nanoseconds to the next expiry, at least 1; 0: the timer is off.
u64 itimer_left(const struct itimer *t);
