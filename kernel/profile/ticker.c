#include "kernel/profile/ticker.h"

#include "kernel/base/log.h"
#include "kernel/fs/devfs.h"
#include "lib/random_distance.h"

static u32 next_distance(struct ticker *t)
{
    return t->seed ? random_distance(&t->seed, t->period) : t->period;
}

// A late callout (interrupts were off, or the host did not run this CPU)
// accounts for all ticks that have come due, and the phase of the grid is kept.
// Of random ticks, one comes due in each whole period that has passed, as on
// average.
static void due(struct callout *timer)
{
    struct ticker *t = container_of(timer, struct ticker, timer);
    u64 now = clock_now_ns(), next = callout_deadline(timer);
    u32 ticks = 0;
    if (!READ_ONCE(t->running))
        return;
    if (unlikely(now - next >= t->period)) {
        ticks = (u32)((now - next) / t->period);
        next += (u64)ticks * t->period;
    }
    do {
        ticks++;
        next += next_distance(t);
    } while (unlikely(next <= now));
    counter_add(&t->ticks, ticks);
    t->fn(t, ticks);
    callout_set(timer, next);
}

void ticker_start(struct ticker *t, u64 first, bool random)
{
    assert(!t->running);
    t->seed = 0;
    if (random) {
        random_bytes(&t->seed, sizeof(t->seed));
        t->seed |= 1;
        first = clock_now_ns() + next_distance(t);
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
