// `watch_lock` guards which timer the watch has. It is held while that timer is
// reserved and started, so timer.c's spinlock nests inside it.

#include "kernel/time/eventwatch.h"

#include "arch/cpu.h"
#include "arch/irq.h"
#include "kernel/base/log.h"
#include "kernel/sync/mutex.h"
#include "kernel/time/callout.h"
#include "kernel/time/timer.h"

const char event_watch_owner[] = "the events' watch";

static struct mutex watch_lock = MUTEX_INIT(watch_lock, "event watch");
static bool watch_needed;   // constant once all CPUs run
static struct timer *timer; // NULL: none
static bool warned;

static void check_events(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
    for (u32 i = 0; i < cpu_count; i++)
        callouts_repeat(&cpus[i]);
}

// Only timers of the machine, not of a CPU, so that only the boot CPU is
// interrupted.
static bool take(const char *name)
{
    mutex_assert_held(&watch_lock);
    struct timer *t;
    if (timer_reserve_name(name, event_watch_owner, &t))
        return false;
    if (timer_start(t, TIMER_PERIODIC, EVENT_WATCH_NS, check_events, NULL)) {
        timer_release(t);
        return false;
    }
    timer = t;
    return true;
}

void event_watch_resume(void)
{
    if (!watch_needed || !irqs_enabled())
        return;
    mutex_lock(&watch_lock);
    if (!timer && !take("rtc") && !take("hpet") && !warned) {
        warned = true;
        log_printf("clock: no timer is free to watch the event timer: if it "
                   "loses an interrupt, sleeps end at the next interrupt of "
                   "a device\n");
    }
    mutex_unlock(&watch_lock);
}

void event_watch_release(void)
{
    assert(irqs_enabled());
    mutex_lock(&watch_lock);
    if (timer)
        timer_release(timer);
    timer = NULL;
    mutex_unlock(&watch_lock);
}

void event_watch_start(void)
{
    watch_needed = cpu_count == 1 || clock_event_vector() != VECTOR_TIMER;
    event_watch_resume();
}
