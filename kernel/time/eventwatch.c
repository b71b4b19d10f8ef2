// `watch_lock` guards which timer the watch has. It is held while that timer is
// reserved and started, so timer.c's spinlock nests inside it.

#include "kernel/time/eventwatch.h"

#include "arch/cpu.h"
#include "arch/irq.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/sync/mutex.h"
#include "kernel/time/callout.h"
#include "kernel/time/timer.h"

const char event_watch_owner[] = "the events' watch";

// How often the RTC interrupts if its alarm does not.
#define RTC_PERIOD_NS (NSEC_PER_SEC / 2)
// Checks in a row without an interrupt of the watch, CHECK_NS_MIN apart: a
// late thread may make several at once.
#define QUIET_CHECKS_MAX 3u
#define CHECK_NS_MIN (2 * NSEC_PER_SEC)

ERROR_COUNTER(replaced, "timers, replaced",
              "their interrupts did not come; the log names them");

static struct mutex watch_lock = MUTEX_INIT(watch_lock, "event watch");
static bool watch_needed; // constant once all CPUs run, or set by a replacement
static struct timer *timer; // NULL: none
static bool warned;
static bool alarm_is_silent; // the RTC's
static u32 interrupts;       // of the watch: written by the boot CPU

// Lost events of this CPU are handled here: its timer may have failed.
static void check_events(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
    WRITE_ONCE(interrupts, interrupts + 1);
    for (u32 i = 0; i < cpu_count; i++) {
        if (callouts_repeat(cpus[i]) && cpus[i] == this_cpu())
            callouts_interrupt(clock_now_ns());
    }
}

// Only timers of the machine, not of a CPU, so that only the boot CPU is
// interrupted.
static bool take(const char *name, u64 period)
{
    mutex_assert_held(&watch_lock);
    struct timer *t;
    if (timer_reserve_name(name, event_watch_owner, &t))
        return false;
    if (timer_start(t, TIMER_PERIODIC, period, check_events, NULL)) {
        timer_release(t);
        return false;
    }
    timer = t;
    return true;
}

static bool take_any(void)
{
    return (!alarm_is_silent && take("rtc", EVENT_WATCH_NS)) ||
           take("hpet", EVENT_WATCH_NS) || take("rtc", RTC_PERIOD_NS);
}

void event_watch_resume(void)
{
    if (!watch_needed || !irqs_enabled())
        return;
    mutex_lock(&watch_lock);
    if (!timer && !take_any() && !warned) {
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

// Whether the watch has had a timer, and no interrupt, for several checks.
static bool is_silent(void)
{
    static u32 seen, quiet_checks; // used by one thread
    static const struct timer *checked;
    static u64 last;
    mutex_assert_held(&watch_lock);
    u64 now = clock_now_ns();
    u32 count = READ_ONCE(interrupts);
    if (!timer || timer != checked || count != seen) {
        checked = timer;
        seen = count;
        quiet_checks = 0;
        last = now;
    } else if (now - last >= CHECK_NS_MIN) {
        quiet_checks++;
        last = now;
    }
    return quiet_checks >= QUIET_CHECKS_MAX;
}

static void replace_own(void)
{
    mutex_assert_held(&watch_lock);
    bool alarm = timer_period_ns(timer) >= NSEC_PER_SEC;
    error_count(&replaced);
    log_printf("clock: %s%s, which watches the event timer, does not come\n",
               timer->name, alarm ? "'s alarm" : "");
    alarm_is_silent |= alarm;
    timer_release(timer);
    timer = NULL;
}

void event_watch_check(void)
{
    mutex_lock(&watch_lock);
    bool silent = is_silent();
    if (silent)
        replace_own();
    mutex_unlock(&watch_lock);
    if (silent)
        event_watch_resume();
    if (!callouts_timer_failed())
        return;
    if (!clock_replace_timer()) {
        error_count(&replaced);
        watch_needed = true;
        event_watch_resume();
    }
    callouts_timer_replaced();
}

void event_watch_start(void)
{
    watch_needed = cpu_count == 1 || clock_event_vector() != VECTOR_TIMER;
    event_watch_resume();
}
