#include "kernel/profile/ticker.h"

#include "kernel/fs/devfs.h"
#include "kernel/init/log.h"
#include "kernel/profile/sample.h"

static u32 next_distance(struct ticker *t)
{
    return t->seed ? sample_random_distance(&t->seed, t->period) : t->period;
}

// Late by whole periods (interrupts were off, or the host did not run this
// CPU): one tick stands for all of them, and the grid is kept.
static void due(struct callout *timer)
{
    struct ticker *t = container_of(timer, struct ticker, timer);
    u64 late = clock_now_ns() - callout_deadline(timer);
    u32 more = likely(late < t->period) ? 0 : (u32)(late / t->period);
    if (!READ_ONCE(t->running))
        return;
    t->fn(t, 1 + more, t->distance + (u64)more * t->period);
    t->distance = next_distance(t);
    callout_set(timer,
                callout_deadline(timer) + (u64)more * t->period + t->distance);
}

void ticker_start(struct ticker *t, u64 first, bool random)
{
    assert(!t->running);
    t->seed = 0;
    t->distance = t->period;
    if (random) {
        random_bytes(&t->seed, sizeof(t->seed));
        t->seed |= 1;
        t->distance = next_distance(t);
        first = clock_now_ns() + t->distance;
    }
    WRITE_ONCE(t->running, true);
    callout_init(&t->timer, due, CALLOUT_INTERRUPT);
    callout_set(&t->timer, first);
}

void ticker_stop(struct ticker *t)
{
    WRITE_ONCE(t->running, false);
    callout_drain(&t->timer);
}
