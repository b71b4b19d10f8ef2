#ifdef CHECKED

#include "kernel/debug/wakes.h"

#include "kernel/base/log.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/waitq.h"

#define SLEEP_SECONDS 5u
#define REPORT_SECONDS 10u
#define STEP_NS (NSEC_PER_SEC / 10)

u32 wakes_patience(void)
{
    return SLEEP_SECONDS;
}

void wakes_slept(bool unwoken)
{
    current->unwoken = unwoken;
}

void wakes_see(struct waiter *w)
{
    w->wakes.before = w->wakes.last;
    w->wakes.last = READ_ONCE(w->queue->wakes.count);
}

void wakes_check(struct waiter *w)
{
    if (!current->unwoken)
        return;
    wait_finish();
    u64 end = clock_now_ns() + REPORT_SECONDS * NSEC_PER_SEC;
    while (READ_ONCE(w->queue->wakes.count) == w->wakes.before) {
        u64 now = clock_now_ns();
        if (now >= end)
            panic("wakes: '%s' is true for %u s, and nobody wakes who waits",
                  w->queue->name, REPORT_SECONDS);
        thread_sleep_until(now + STEP_NS, WAIT_UNINTERRUPTIBLE);
    }
}

#endif
