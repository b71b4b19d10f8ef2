// `watch_lock` guards which timer the watch has. It is held while that timer is
// reserved and started, so timer.c's spinlock nests inside it. `joined_lock`
// guards which one it has joined: users start theirs where they may not sleep.

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
// Checks in a row without a timer, until the log says so.
#define UNWATCHED_CHECKS 2u

ERROR_COUNTER(replaced, "timers, replaced",
              "their interrupts did not come; the log names them");

static struct mutex watch_lock = MUTEX_INIT(watch_lock, "event watch");
static struct spinlock joined_lock = SPINLOCK_INIT("event watch, joined");
static bool started;        // constant once all CPUs run
static struct timer *timer; // NULL: none

// The timer of another user that calls joined_fn in the place of `fn`. Written
// while it is claimed and silent, so joined_fn, also in an NMI, reads it
// without a lock. But `last` and `due` are written by joined_fn on the boot
// CPU.
static struct {
    const struct timer *timer; // NULL: none
    bool nmi;
    timer_fn_t fn;
    void *arg;
    u64 last, period; // TSC
    bool due;         // an NMI has asked for checks
} joined;

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
    WRITE_ONCE(timer, t);
    return true;
}

static bool take_any(void)
{
    return (!alarm_is_silent && take("rtc", EVENT_WATCH_NS)) ||
           take("hpet", EVENT_WATCH_NS) || take("rtc", RTC_PERIOD_NS);
}

void event_watch_resume(void)
{
    if (!started || !irqs_enabled())
        return;
    mutex_lock(&watch_lock);
    if (!timer)
        take_any();
    mutex_unlock(&watch_lock);
}

// An NMI may have interrupted any holder of the callouts' locks, so it leaves
// the checks to an interrupt. (Nor does it read the clock, which is traced.)
static NOTRACE void joined_fn(void *arg UNUSED, const struct trapframe *tf)
{
    joined.fn(joined.arg, tf);
    if (this_cpu_read(id) != 0)
        return;
    u64 now = rdtsc();
    if (now - joined.last < joined.period)
        return;
    joined.last = now;
    if (joined.nmi) {
        WRITE_ONCE(joined.due, true);
        irq_raise_deferred();
    } else {
        check_events(NULL, tf);
    }
}

void event_watch_deferred(void)
{
    if (!READ_ONCE(joined.due) || this_cpu()->id != 0)
        return;
    WRITE_ONCE(joined.due, false);
    check_events(NULL, NULL);
}

void event_watch_join(struct timer *t)
{
    assert(t->mode && t->fn);
    if (!started || t->owner == event_watch_owner ||
        !(t->mode & TIMER_PERIODIC))
        return;
    u32 flags = spin_lock_irq(&joined_lock);
    if (!READ_ONCE(timer) && (!joined.timer || joined.timer == t)) {
        WRITE_ONCE(joined.timer, t);
        joined.nmi = t->mode & TIMER_NMI;
        joined.period = EVENT_WATCH_NS / NSEC_PER_SEC * clock_tsc_hz();
        joined.fn = t->fn;
        joined.arg = t->arg;
        __atomic_store_n(&t->fn, joined_fn, __ATOMIC_RELEASE);
    }
    spin_unlock_irq(&joined_lock, flags);
}

void event_watch_leave(const struct timer *t)
{
    u32 flags = spin_lock_irq(&joined_lock);
    if (joined.timer == t)
        WRITE_ONCE(joined.timer, NULL);
    spin_unlock_irq(&joined_lock, flags);
}

void event_watch_release(void)
{
    assert(irqs_enabled());
    mutex_lock(&watch_lock);
    if (timer)
        timer_release(timer);
    WRITE_ONCE(timer, NULL);
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
    WRITE_ONCE(timer, NULL);
}

// A user that has taken the watch's timer may not have started it yet.
static void report_none(void)
{
    static u32 checks;
    mutex_assert_held(&watch_lock);
    if (timer || READ_ONCE(joined.timer))
        checks = 0;
    else if (++checks == UNWATCHED_CHECKS)
        log_printf("clock: no timer is free to watch the event timer: if it "
                   "loses an interrupt, sleeps end at the next interrupt of "
                   "a device\n");
}

void event_watch_check(void)
{
    mutex_lock(&watch_lock);
    bool silent = is_silent();
    if (silent)
        replace_own();
    report_none();
    mutex_unlock(&watch_lock);
    if (silent)
        event_watch_resume();
    if (!callouts_timer_failed())
        return;
    if (!clock_replace_timer()) {
        error_count(&replaced);
        event_watch_resume();
    }
    callouts_timer_replaced();
}

void event_watch_start(void)
{
    started = true;
    event_watch_resume();
}
