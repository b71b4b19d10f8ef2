// Sample sources over the timer registry: a device that interrupts every CPU at
// once, by an ordinary interrupt that the boot CPU passes on ("rtc"), or as
// NMI, which code that runs with interrupts off does not hold up ("nmi-hpet",
// "nmi-pit", "nmi-rtc").
//
// How many ticks an interrupt stands for is told by the TSC of this CPU
// (tick_grid.h): what came while it could not be taken has merged into one.

#include "arch/clock.h"
#include "arch/cpu.h"
#include "kernel/errno.h"
#include "kernel/fs/devfs.h"
#include "kernel/profile/sample.h"
#include "kernel/profile/tick_grid.h"
#include "kernel/time/timer.h"
#include "lib/string.h"

struct timer_source {
    struct sample_source source;
    const char *timer; // its name in the registry
    struct timer *reserved;
    u32 period_ns, even_period; // TSC cycles; 0: each tick is looked at
    u64 period_cycles;
    bool random; // single shots, each set off by the one before
    u32 seed;    // the boot CPU's, as is:
    u64 due;     // when the next shot is, TSC
    struct tick_grid grid[CPU_MAX];
};

static u64 cycles_of(u64 ns)
{
    return clock_tsc_hz() * ns / NSEC_PER_SEC;
}

// The boot CPU sets off the next shot: from when this one was due, or distances
// would be longer on average by what an interrupt takes. After one that came
// very late (interrupts merged, or the host did not run this CPU): from `now`.
static void shoot_again(struct timer_source *s, u64 now)
{
    u32 period = READ_ONCE(s->period_ns);
    u64 late = clock_tsc_to_ns(now > s->due ? now - s->due : 0);
    u64 distance = sample_random_distance(&s->seed, period);
    if (late < period / 4)
        distance = MAX(distance - late, s->reserved->min_period);
    s->due = now + cycles_of(distance);
    timer_again(s->reserved, distance);
}

// There is no grid, and up to one and a half periods are no loss.
static void random_tick(struct timer_source *s, struct sample_hit *hit)
{
    struct tick_grid *grid = &s->grid[this_cpu()->id];
    u64 gap = hit->time - tick_grid_last(grid);
    u64 period = READ_ONCE(s->period_cycles);
    if (gap > period / 8 * 13)
        hit->ticks = (u32)((gap + period / 2) / period);
    hit->period = clock_tsc_to_ns(gap);
    tick_grid_start(grid, hit->time);
    if (this_cpu()->id == 0)
        shoot_again(s, hit->time);
    sample_take(&s->source, hit);
}

// Late, or at random.
static NOINLINE void odd_tick(struct timer_source *s, struct sample_hit *hit)
{
    if (s->random) {
        random_tick(s, hit);
        return;
    }
    hit->ticks = tick_grid_passed(&s->grid[this_cpu()->id], hit->time,
                                  READ_ONCE(s->period_cycles));
    hit->period *= hit->ticks;
    if (hit->ticks)
        sample_take(&s->source, hit);
}

static void tick(void *arg, const struct trapframe *tf)
{
    struct timer_source *s = arg;
    struct tick_grid *grid = &s->grid[this_cpu_read(id)];
    struct sample_hit hit = { tf, 1, READ_ONCE(s->period_ns), rdtsc() };
    if (likely(
            tick_grid_in_time(grid, (u32)hit.time, READ_ONCE(s->even_period))))
        sample_take(&s->source, &hit);
    else
        odd_tick(s, &hit);
}

static struct timer_source *mine(const struct sample_source *s)
{
    return container_of(s, struct timer_source, source);
}

static int start_timer(struct timer_source *s, u64 period)
{
    u32 mode = s->random ? TIMER_ONESHOT : TIMER_PERIODIC;
    mode |= s->source.nmi ? TIMER_NMI : TIMER_ALL_CPUS;
    return timer_start(s->reserved, mode, period, tick, s);
}

// A tick that comes between the two settings of start() goes by either.
static void set_period(struct timer_source *s, u32 ns)
{
    u64 cycles = cycles_of(ns);
    bool even = !s->random && cycles <= TICK_GRID_PERIOD_MAX;
    WRITE_ONCE(s->period_ns, ns);
    WRITE_ONCE(s->period_cycles, cycles);
    WRITE_ONCE(s->even_period, even ? (u32)cycles : 0);
}

static int start(const struct sample_source *source, struct sample_rate *rate)
{
    struct timer_source *s = mine(source);
    int err = timer_reserve_name(s->timer, s->source.name, &s->reserved);
    if (err)
        return err;
    u64 period = NSEC_PER_SEC / rate->hz;
    for (u32 i = 0; i < CPU_MAX; i++)
        tick_grid_start(&s->grid[i], rdtsc());
    s->random = rate->random && s->reserved->flags & TIMER_ONESHOT;
    set_period(s, (u32)period); // until the device has said what it makes of it
    random_bytes(&s->seed, sizeof(s->seed));
    s->seed |= 1;
    s->due = rdtsc() + cycles_of(period);
    err = start_timer(s, period);
    if (err == -EINVAL && s->random) { // then at even distances
        s->random = false;
        err = start_timer(s, period);
    }
    if (err) {
        timer_release(s->reserved);
        return err;
    }
    // (A single shot has no period but its first.)
    rate->period = s->random ? period : timer_period_ns(s->reserved);
    rate->hz = (u32)((NSEC_PER_SEC + rate->period / 2) / rate->period);
    rate->random = s->random;
    set_period(s, (u32)rate->period);
    return 0;
}

static void stop(const struct sample_source *source)
{
    struct timer_source *s = mine(source);
    timer_stop(s->reserved);
    timer_release(s->reserved);
}

struct search {
    const struct timer_source *source;
    const char *why_not;
};

// "hpet" stands for hpet0, hpet1, ...
static void look_at(const struct timer *t, void *arg)
{
    struct search *search = arg;
    const char *name = search->source->timer;
    if (!search->why_not || memcmp(t->name, name, strlen(name)))
        return;
    const char *owner = READ_ONCE(t->owner); // it may go now
    u32 needed = search->source->source.nmi ? TIMER_NMI : TIMER_ALL_CPUS;
    if (t->why_not)
        search->why_not = t->why_not;
    else if (!(t->flags & needed))
        search->why_not = "it cannot interrupt all CPUs so";
    else if (owner && strcmp(owner, search->source->source.name))
        search->why_not = "the timer is in use";
    else
        search->why_not = NULL;
}

static const char *why_not(const struct sample_source *source)
{
    struct search search = { mine(source), "the machine has no such timer" };
    timers_each(look_at, &search);
    return search.why_not;
}

#define TIMER_SOURCE(id, text, device, is_nmi, order, low, high)          \
    static struct timer_source id##_source = { .source = {              \
                                                   .name = text,        \
                                                   .rank = order,       \
                                                   .min_hz = low,       \
                                                   .max_hz = high,      \
                                                   .nmi = is_nmi,       \
                                                   .why_not = why_not,  \
                                                   .start = start,      \
                                                   .stop = stop,        \
                                               },                       \
                                               .timer = device }; \
    LINKER_SET_ADD_PART(sample_sources, id, id##_source.source)

TIMER_SOURCE(nmi_hpet, "nmi-hpet", "hpet", true, 300, 1, 20000);
TIMER_SOURCE(nmi_pit, "nmi-pit", "pit", true, 250, 19, 20000);
TIMER_SOURCE(nmi_rtc, "nmi-rtc", "rtc", true, 200, 2, 8192);
TIMER_SOURCE(rtc, "rtc", "rtc", false, 50, 2, 8192);
