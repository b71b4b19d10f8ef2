// Sample sources driven by each CPU's clock events. Maskable: code that runs
// with interrupts off is not sampled.
//
// "lapic": usable where the local APIC timers drive the clock events; any rate,
// optionally with random periods.
// "clock": the system tick, whichever timer drives the clock events. It is
// aligned to the grid of kernel time, like the tick of a tick-based kernel.
// Usable on every machine, but code that runs in step with the grid (after a
// sleep) is sampled too often or never.

#include "arch/cpu.h"
#include "arch/irq.h"
#include "kernel/profile/sample.h"
#include "kernel/profile/ticker.h"
#include "lib/cpu_memory.h"

struct clock_source {
    struct sample_source source;
    bool on_grid; // ticks are multiples of the period in kernel time; else they
                  // count from the start
    bool random;
    u32 period;              // ns
    struct ticker **tickers; // by CPU
};

static struct ticker *lapic_tickers[CPU_MAX], *clock_tickers[CPU_MAX];
CPU_MEMORY(lapic_tickers, 1);
CPU_MEMORY(clock_tickers, 1);

static struct clock_source lapic_source, clock_source;

static struct clock_source *mine(const struct sample_source *s)
{
    return container_of(s, struct clock_source, source);
}

static void take(const struct clock_source *s, u32 ticks)
{
    struct sample_hit hit = { this_cpu()->irq_frame, ticks,
                              (u64)ticks * s->period, rdtsc() };
    sample_take_irq(&s->source, &hit);
}

static void lapic_tick(struct ticker *t UNUSED, u32 ticks)
{
    take(&lapic_source, ticks);
}

static void clock_tick(struct ticker *t UNUSED, u32 ticks)
{
    take(&clock_source, ticks);
}

static void start_here(void *arg)
{
    struct clock_source *s = arg;
    struct ticker *t = s->tickers[this_cpu()->id];
    u64 first = clock_now_ns() + s->period;
    if (s->on_grid)
        first -= first % s->period;
    t->period = s->period;
    t->fn = s->on_grid ? clock_tick : lapic_tick;
    ticker_start(t, first, s->random);
}

static int start(const struct sample_source *source, struct sample_rate *rate)
{
    struct clock_source *s = mine(source);
    s->period = (u32)NSEC_PER_SEC / rate->hz;
    s->random = rate->random && !s->on_grid;
    smp_call_all(start_here, s);
    rate->random = s->random;
    rate->period = s->period;
    rate->hz = ((u32)NSEC_PER_SEC + s->period / 2) / s->period;
    return 0;
}

static void stop(const struct sample_source *source)
{
    for (u32 i = 0; i < cpu_count; i++)
        ticker_stop(mine(source)->tickers[i]);
}

static u64 ticks(const struct sample_source *source)
{
    return counter_read(&mine(source)->tickers[this_cpu()->id]->ticks);
}

static const char *lapic_why_not(const struct sample_source *s UNUSED)
{
    if (clock_event_vector() == VECTOR_TIMER)
        return NULL;
    return "the clock's events come from another timer (system.clock)";
}

static const char *clock_why_not(const struct sample_source *s UNUSED)
{
    return NULL;
}

static struct clock_source lapic_source = {
    .source = {
        .name = "lapic",
        .rank = 100,
        .min_hz = 1,
        .max_hz = 20000,
        .why_not = lapic_why_not,
        .start = start,
        .stop = stop,
        .ticks = ticks,
    },
    .tickers = lapic_tickers,
};
LINKER_SET_ADD_PART(sample_sources, lapic, lapic_source.source);

static struct clock_source clock_source = {
    .source = {
        .name = "clock",
        .rank = 25,
        .min_hz = 1,
        .max_hz = 1000,
        .why_not = clock_why_not,
        .start = start,
        .stop = stop,
    },
    .on_grid = true,
    .tickers = clock_tickers,
};
LINKER_SET_ADD_PART(sample_sources, clock, clock_source.source);
