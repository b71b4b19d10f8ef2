// Sample sources over the timer registry: a device that interrupts every CPU at
// once, by a maskable interrupt that the boot CPU passes on ("rtc"), or by NMI,
// which also samples code that runs with interrupts off ("nmi-hpet", "nmi-pit",
// "nmi-rtc").
//
// Ticks that come due while an interrupt cannot be taken merge into one. How
// many an interrupt accounts for is computed from the TSC of this CPU at a
// fixed period (tick_grid.h), and from the timer's count of shots at random
// ones (shot_count.h).

#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/regs.h"
#include "kernel/base/errno.h"
#include "kernel/fs/devfs.h"
#include "kernel/profile/session_private.h"
#include "kernel/profile/shot_count.h"
#include "kernel/profile/tick_grid.h"
#include "kernel/time/timer.h"
#include "lib/string.h"

struct timer_source {
    struct sample_source source;
    struct timer *reserved;
    u32 period_ns;
    u64 period_cycles; // TSC
    u32 even_period;   // the same in 32 bits; 0: too long for the fast path
    struct tick_grid grid[CPU_MAX];
    struct shot_count shots[CPU_MAX];
};

static u64 cycles_of(u64 ns)
{
    return clock_tsc_hz() * ns / NSEC_PER_SEC;
}

// The slow path: the tick is late, or is not an NMI.
static NOINLINE void late_tick(struct timer_source *s, struct sample_hit *hit)
{
    hit->ticks = tick_grid_passed(&s->grid[this_cpu()->id], hit->time,
                                  READ_ONCE(s->period_cycles));
    hit->period *= hit->ticks;
    if (!hit->ticks)
        return;
    if (s->source.nmi)
        sample_take(&s->source, hit);
    else
        sample_take_irq(&s->source, hit);
}

static void nmi_tick(void *arg, const struct trapframe *tf)
{
    struct timer_source *s = arg;
    struct tick_grid *grid = &s->grid[this_cpu_read(id)];
    struct sample_hit hit = { tf, 1, READ_ONCE(s->period_ns), rdtsc() };
    if (likely(
            tick_grid_in_time(grid, (u32)hit.time, READ_ONCE(s->even_period))))
        sample_take(&s->source, &hit);
    else
        late_tick(s, &hit);
}

static void random_tick(void *arg, const struct trapframe *tf)
{
    struct timer_source *s = arg;
    u64 now = rdtsc();
    u32 ticks = shot_count_passed(&s->shots[this_cpu_read(id)],
                                  READ_ONCE(s->reserved->shots.low));
    struct sample_hit hit = { tf, ticks, (u64)ticks * READ_ONCE(s->period_ns),
                              now };
    if (likely(ticks))
        sample_take(&s->source, &hit);
}

static void irq_tick(void *arg, const struct trapframe *tf)
{
    struct timer_source *s = arg;
    struct sample_hit hit = { tf, 1, READ_ONCE(s->period_ns), rdtsc() };
    late_tick(s, &hit);
}

static struct timer_source *mine(const struct sample_source *s)
{
    return container_of(s, struct timer_source, source);
}

// A tick between the two calls in start_even uses either period.
static void set_period(struct timer_source *s, u64 ns)
{
    u64 cycles = cycles_of(ns);
    WRITE_ONCE(s->period_ns, (u32)ns);
    WRITE_ONCE(s->period_cycles, cycles);
    WRITE_ONCE(s->even_period,
               cycles <= TICK_GRID_PERIOD_MAX ? (u32)cycles : 0);
}

static u32 mode_of(const struct timer_source *s)
{
    return TIMER_PERIODIC | (s->source.nmi ? TIMER_NMI : TIMER_ALL_CPUS);
}

static int start_even(struct timer_source *s, u64 period)
{
    for (u32 i = 0; i < cpu_count; i++)
        tick_grid_start(&s->grid[i], rdtsc());
    set_period(s, period); // until the device reports its actual period
    int err = timer_start(s->reserved, mode_of(s), period,
                          s->source.nmi ? nmi_tick : irq_tick, s);
    if (!err)
        set_period(s, timer_period_ns(s->reserved));
    return err;
}

// -EINVAL: the timer cannot vary its period.
static int start_random(struct timer_source *s, u64 period)
{
    struct timer *t = s->reserved;
    random_bytes(&t->seed, sizeof(t->seed));
    t->seed |= 1;
    s->period_ns = (u32)period;
    for (u32 i = 0; i < cpu_count; i++)
        s->shots[i].accounted = READ_ONCE(t->shots.low);
    return timer_start(t, mode_of(s) | TIMER_RANDOM, period, random_tick, s);
}

// The requested period, or the shortest that the timer can do.
static u64 period_of(const struct timer *t, const struct sample_rate *rate)
{
    bool random = rate->random && t->flags & TIMER_RANDOM;
    u64 shortest = t->min_period * (random ? TIMER_RANDOM_PARTS : 1);
    return MAX(NSEC_PER_SEC / rate->hz, shortest);
}

static int start(const struct sample_source *source, struct sample_rate *rate)
{
    struct timer_source *s = mine(source);
    int err = timer_reserve_name(source->timer, s->source.name, &s->reserved);
    if (err)
        return err;
    u64 period = period_of(s->reserved, rate);
    err = rate->random ? start_random(s, period) : -EINVAL;
    rate->random = !err;
    if (err == -EINVAL)
        err = start_even(s, period);
    if (err) {
        timer_release(s->reserved);
        return err;
    }
    if (s->source.nmi)
        sample_nmi_delay(s->reserved->delay);
    rate->period = timer_period_ns(s->reserved); // the actual one
    WRITE_ONCE(s->period_ns, (u32)rate->period);
    rate->hz = (u32)((NSEC_PER_SEC + rate->period / 2) / rate->period);
    return 0;
}

// A tick in between uses either period, as in start_even.
static void rate_corrected(void)
{
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if ((*s)->start == start && mine(*s)->period_cycles)
            set_period(mine(*s), mine(*s)->period_ns);
    }
}

static const struct tsc_rate_observer by_rate = { rate_corrected };
TSC_RATE_OBSERVER(by_rate);

static void stop(const struct sample_source *source)
{
    struct timer_source *s = mine(source);
    timer_stop(s->reserved);
    timer_release(s->reserved);
    if (source->nmi)
        sample_nmi_delay(SAMPLE_NO_DELAY);
}

static u64 ticks(const struct sample_source *source)
{
    return counter_read(&mine(source)->reserved->shots);
}

static u32 nmi_vector(const struct sample_source *source UNUSED)
{
    return VECTOR_NMI;
}

static u32 irq_vector(const struct sample_source *source)
{
    return mine(source)->reserved->vector;
}

struct search {
    const struct timer_source *source;
    const char *why_not;
};

// "hpet" matches hpet0, hpet1, ...
static void check_timer(const struct timer *t, void *arg)
{
    struct search *search = arg;
    const char *name = search->source->source.timer;
    if (!search->why_not || memcmp(t->name, name, strlen(name)))
        return;
    const char *owner = timer_user(t); // it may be released concurrently
    u32 needed = search->source->source.nmi ? TIMER_NMI : TIMER_ALL_CPUS;
    if (t->why_not)
        search->why_not = t->why_not;
    else if (!(t->flags & needed))
        search->why_not = "it cannot interrupt all CPUs";
    else if (owner && strcmp(owner, search->source->source.name))
        search->why_not = "the timer, or its interrupt line, is in use";
    else
        search->why_not = NULL;
}

static const char *why_not(const struct sample_source *source)
{
    struct search search = { mine(source), "the machine has no such timer" };
    timers_each(check_timer, &search);
    return search.why_not;
}

#define TIMER_SOURCE(id, text, device, is_nmi, order, low, high)               \
    static struct timer_source id##_source = { .source = {                     \
                                                   .name = text,               \
                                                   .rank = order,              \
                                                   .min_hz = low,              \
                                                   .max_hz = high,             \
                                                   .nmi = is_nmi,              \
                                                   .timer = device,            \
                                                   .vector = is_nmi            \
                                                                 ? nmi_vector  \
                                                                 : irq_vector, \
                                                   .why_not = why_not,         \
                                                   .start = start,             \
                                                   .stop = stop,               \
                                                   .ticks = ticks,             \
                                               } };                            \
    LINKER_SET_ADD_PART(sample_sources, id, id##_source.source)

TIMER_SOURCE(nmi_hpet, "nmi-hpet", "hpet", true, 300, 1, 20000);
TIMER_SOURCE(nmi_pit, "nmi-pit", "pit", true, 250, 19, 20000);
TIMER_SOURCE(nmi_rtc, "nmi-rtc", "rtc", true, 200, 2, 8192);
TIMER_SOURCE(rtc, "rtc", "rtc", false, 50, 2, 8192);
