#ifdef CHECKED

#include "kernel/debug/wakes.h"

#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/waitq.h"

#define SLEEP_SECONDS 5u
#define REPORT_SECONDS 10u
#define CHECKS_PER_SECOND 10u

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
    for (u32 i = 0; READ_ONCE(w->queue->wakes.count) == w->wakes.before; i++) {
        if (i == REPORT_SECONDS * CHECKS_PER_SECOND)
            panic("wakes: '%s' is true for %u s, and nobody wakes who waits",
                  w->queue->name, REPORT_SECONDS);
        thread_sleep_until(clock_now_ns() + NSEC_PER_SEC / CHECKS_PER_SECOND,
                           WAIT_UNINTERRUPTIBLE);
        smp_quiesce_others(); // each CPU has run, too
    }
}

#endif
