// The timecounter registry: finds the counters, chooses one, changes the
// choice.
//
// `choice_lock` guards `in_use` and the callout that reads a narrow counter
// before it wraps. `in_use` is also read without the lock.
#include "kernel/time/timecounter.h"

#include "kernel/base/cmdline.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/sync/spinlock.h"
#include "kernel/time/callout.h"
#include "kernel/time/timehands.h"
#include "kernel/time/timer.h"
#include "lib/format.h"
#include "lib/string.h"

KERNEL_ARG(clocksource, "clocksource=NAME: the timecounter");

// A counter that wraps later than this is read often enough anyway.
#define WRAP_NEVER_SEC (365ull * 24 * 3600)

static struct spinlock choice_lock = SPINLOCK_INIT("timecounter");
static struct timecounter *in_use;
static struct callout reading;
static bool callouts_work;

struct timecounter *timecounter_in_use(void)
{
    return READ_ONCE(in_use);
}

// --- choosing ---------------------------------------------------------------

// A counter whose rate is not known ranks below all others.
static bool is_better(const struct timecounter *a, const struct timecounter *b)
{
    bool known = timecounter_rate_is_known(a);
    if (known != timecounter_rate_is_known(b))
        return known;
    return a->rank > b->rank;
}

static struct timecounter *best_usable(void)
{
    struct timecounter *best = NULL;
    FOR_EACH_TIMECOUNTER(tc)
    {
        if (!READ_ONCE((*tc)->why_not) && (!best || is_better(*tc, best)))
            best = *tc;
    }
    return best;
}

// The next counter to probe: those of lower rank measure those of higher.
static struct timecounter *next_above(u32 rank)
{
    struct timecounter *next = NULL;
    FOR_EACH_TIMECOUNTER(tc)
    {
        if ((*tc)->rank > rank && (!next || (*tc)->rank < next->rank))
            next = *tc;
    }
    return next;
}

static void probe_all(void)
{
    for (struct timecounter *tc = next_above(0); tc; tc = next_above(tc->rank))
        tc->why_not = tc->probe ? tc->probe(tc) : NULL;
}

static struct timecounter *wanted(void)
{
    if (!arg_clocksource.present)
        return NULL;
    FOR_EACH_TIMECOUNTER(tc)
    {
        if (!strcmp((*tc)->name, arg_clocksource.value) && !(*tc)->why_not)
            return *tc;
    }
    char names[64];
    size_t n = 0;
    FOR_EACH_TIMECOUNTER(tc)
    {
        if (!(*tc)->why_not && n < sizeof(names))
            n += (size_t)format(names + n, sizeof(names) - n, " %s",
                                (*tc)->name);
    }
    log_printf("warning: clocksource=%s cannot be used; available:%s\n",
               arg_clocksource.value, names);
    return NULL;
}

static void announce(const struct timecounter *tc)
{
    log_printf("clock: time by the %s, %llu.%06llu MHz\n", tc->name,
               tc->hz / 1000000, tc->hz % 1000000);
}

// --- reading before the counter wraps ---------------------------------------

// Half the time, in ns, in which the counter wraps; 0: a year or more.
static u64 reading_period(const struct timecounter *tc)
{
    assert(tc->hz);
    u64 half = tc->mask / 2;
    return half / tc->hz >= WRAP_NEVER_SEC
               ? 0
               : half * (NSEC_PER_SEC / 1000) / tc->hz * 1000;
}

static void set_reading(void)
{
    spin_assert_held(&choice_lock);
    assert(in_use);
    u64 period = reading_period(in_use);
    if (callouts_work && period)
        callout_set(&reading, clock_now_ns() + period);
}

static void read_again(struct callout *c UNUSED)
{
    timehands_refresh();
    u32 flags = spin_lock_irq(&choice_lock);
    set_reading();
    spin_unlock_irq(&choice_lock, flags);
}

// --- changing the choice ----------------------------------------------------

static void change(struct timecounter *tc)
{
    spin_assert_held(&choice_lock);
    struct timecounter *old = in_use;
    assert(tc->hz >= 2 && tc->read && !(tc->mask & (tc->mask + 1)));
    if (tc == old)
        return;
    if (tc->start)
        tc->start(tc);
    timehands_use(tc);
    WRITE_ONCE(in_use, tc);
    if (old && old->stop)
        old->stop(old);
    set_reading();
}

int timecounter_use(struct timecounter *tc)
{
    if (READ_ONCE(tc->why_not))
        return -EINVAL;
    u32 flags = spin_lock_irq(&choice_lock);
    change(tc);
    spin_unlock_irq(&choice_lock, flags);
    return 0;
}

void timecounter_demote(struct timecounter *tc, const char *why)
{
    assert(why);
    u32 flags = spin_lock_irq(&choice_lock);
    bool used = tc == in_use;
    struct timecounter *next = NULL;
    WRITE_ONCE(tc->why_not, why);
    if (used && (next = best_usable()))
        change(next);
    spin_unlock_irq(&choice_lock, flags);
    log_printf("clock: the %s is no longer used: %s\n", tc->name, why);
    if (next)
        announce(next);
    else if (used)
        log_printf("clock: no other timecounter; the time may be wrong\n");
}

void timecounter_doubt(struct timecounter *tc)
{
    u32 flags = spin_lock_irq(&choice_lock);
    WRITE_ONCE(tc->error_ppm, 1000000);
    struct timecounter *next = best_usable();
    if (tc == in_use)
        change(next);
    spin_unlock_irq(&choice_lock, flags);
    log_printf("clock: the rate of the %s is measured again\n", tc->name);
    if (next != tc)
        announce(next);
}

void timecounter_correct(struct timecounter *tc, u64 hz, u32 error_ppm)
{
    assert(hz && !timecounter_rate_is_known(tc));
    u32 flags = spin_lock_irq(&choice_lock);
    struct timecounter *by = in_use;
    assert(by != tc);
    tc->hz = hz;
    WRITE_ONCE(tc->error_ppm, error_ppm);
    bool best = best_usable() == tc && !arg_clocksource.present;
    spin_unlock_irq(&choice_lock, flags);
    log_printf("clock: the rate of the %s is %llu.%06llu MHz +-%u ppm, by the "
               "%s\n",
               tc->name, hz / 1000000, hz % 1000000, error_ppm, by->name);
    if (tc->corrected)
        tc->corrected(tc);
    if (best && !timecounter_use(tc))
        announce(tc);
}

void timecounters_init(void)
{
    probe_all();
    struct timecounter *tc = wanted();
    if (!tc)
        tc = best_usable();
    if (!tc)
        panic("clock: no usable timecounter");
    if (timecounter_use(tc))
        panic("clock: the %s cannot be used: %s", tc->name, tc->why_not);
    announce(tc);
}

void timecounters_start(void)
{
    assert(in_use);
    callout_init(&reading, read_again, CALLOUT_INTERRUPT);
    u32 flags = spin_lock_irq(&choice_lock);
    callouts_work = true;
    set_reading();
    spin_unlock_irq(&choice_lock, flags);
}

// --- system.clock -----------------------------------------------------------

// A text for sysinfo: how the counter was found, if it is in use; else why it
// is not.
static void describe_use(const struct timecounter *tc, char *text, size_t size)
{
    const struct timecounter *used = timecounter_in_use();
    assert(used);
    const char *why_not = READ_ONCE(tc->why_not);
    if (why_not)
        strlcpy(text, why_not, size);
    else if (tc == used)
        strlcpy(text, tc->note ? tc->note : "", size);
    else if (!timecounter_rate_is_known(tc))
        format(text, size, "its rate is being measured%s%s",
               tc->note ? "; " : "", tc->note ? tc->note : "");
    else if (tc->rank < used->rank)
        format(text, size, "ranks below the %s%s%s", used->name,
               tc->note ? "; " : "", tc->note ? tc->note : "");
    else
        strlcpy(text, "clocksource= names another", size);
}

struct each {
    void (*fn)(const struct sysinfo_clock *clock, void *arg);
    void *arg;
};

static void put_timecounter(const struct timecounter *tc, const struct each *e)
{
    struct sysinfo_clock record = {
        .use = "time source",
        .rank = tc->rank,
        .usable = !READ_ONCE(tc->why_not),
        .chosen = tc == timecounter_in_use(),
        .frequency = tc->hz,
    };
    strlcpy(record.name, tc->name, sizeof(record.name));
    describe_use(tc, record.why, sizeof(record.why));
    e->fn(&record, e->arg);
}

static void put_timer(const struct timer *t, void *arg)
{
    const struct each *e = arg;
    struct sysinfo_clock record = {
        .use = "timer",
        .rank = t->rank,
        .usable = !t->why_not,
        .chosen = READ_ONCE(t->owner) != NULL,
        .frequency = t->hz,
    };
    strlcpy(record.name, t->name, sizeof(record.name));
    timer_describe(t, record.why, sizeof(record.why));
    e->fn(&record, e->arg);
}

void clock_devices_each(void (*fn)(const struct sysinfo_clock *, void *),
                        void *arg)
{
    struct each e = { fn, arg };
    for (u32 rank = ~0u;;) {
        struct timecounter *next = NULL;
        FOR_EACH_TIMECOUNTER(tc)
        {
            if ((*tc)->rank < rank && (!next || (*tc)->rank > next->rank))
                next = *tc;
        }
        if (!next)
            break;
        put_timecounter(next, &e);
        rank = next->rank;
    }
    timers_each(put_timer, &e);
}
