#include "kernel/profile/ticker.h"

#include "kernel/base/log.h"
#include "kernel/fs/devfs.h"
#include "lib/random_distance.h"

// A late callout (interrupts were off, or the host did not run this CPU)
// accounts for all ticks that have come due, and the phase of the grid is kept.
static void due(struct callout *timer)
{
    struct ticker *t = container_of(timer, struct ticker, timer);
    u64 now = clock_now_ns(), next = callout_deadline(timer);
    if (!READ_ONCE(t->running))
        return;
    u32 ticks = random_row_pass(&t->seed, &next, now, t->period);
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
        first = clock_now_ns() + random_distance(&t->seed, t->period);
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
