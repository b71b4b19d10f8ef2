// Forgotten wake-ups, in checked kernels: a thread waits without a deadline,
// its condition becomes true, and nobody wakes the queue.
//
// Such a thread wakes by itself from time to time (which waiters allow) and
// reads its condition. If it is true and the queue has not been woken since it
// was read before, the thread waits on: the waker may be about to do it, or the
// host may have stopped it. If no wake-up comes for long, it is reported. Long
// is a number of checks, between which every CPU has run: the clock goes on
// while the host stops the machine, or one CPU. Another waiter's wake-up
// counts, too: the condition may be a mutex, which this thread took before that
// one.
#pragma once

#include "lib/types.h"

struct waiter;

#ifdef CHECKED
struct wakes {
    u32 count; // guarded by the queue's lock; read without
};
struct wakes_seen {
    u32 last, before; // `count` before the last two readings of the condition
};

static inline void wakes_init(struct wakes *w)
{
    w->count = 0;
}
static inline void wakes_count(struct wakes *w)
{
    WRITE_ONCE(w->count, w->count + 1);
}
// Before the condition is read.
void wakes_see(struct waiter *w);
// It is true. May sleep.
void wakes_check(struct waiter *w);
// How many seconds one sleep lasts at most (0: forever), and whether the
// current thread's last one did.
u32 wakes_patience(void);
void wakes_slept(bool unwoken);

#else
struct wakes {
};
struct wakes_seen {
};
static inline void wakes_init(struct wakes *w UNUSED)
{
}
static inline void wakes_count(struct wakes *w UNUSED)
{
}
static inline void wakes_see(struct waiter *w UNUSED)
{
}
static inline void wakes_check(struct waiter *w UNUSED)
{
}
static inline u32 wakes_patience(void)
{
    return 0;
}
static inline void wakes_slept(bool unwoken UNUSED)
{
}
#endif
