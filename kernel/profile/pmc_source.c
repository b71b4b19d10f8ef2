// Sample source "pmc": the performance counters of each CPU raise an NMI after
// each period of events. It samples code that has interrupts off, and can
// sample by causes such as cache and branch misses. A halted CPU counts no
// cycles and is not interrupted.
//
// Each event has its own counter and its own struct sample_source. The first of
// them is found by name, the others through `next`.

#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/irq.h"
#include "arch/pmu.h"
#include "arch/regs.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/devfs.h"
#include "kernel/profile/pace.h"
#include "kernel/profile/session_private.h"
#include "kernel/time/ledger.h"
#include "lib/cpu_memory.h"

#define WINDOWS_PER_SECOND 100

#define PMC_EVENTS 8 // concurrent events; few CPUs have more counters

struct pmc_source {
    struct sample_source source;
    struct pmu_sampling sampling;
    u32 index, bit; // in pmc_sources
};

static struct pmc_source pmc_sources[PMC_EVENTS];

// The period of each source on each CPU, written only in its NMIs while the
// source runs.
static struct pace *paces[CPU_MAX];
CPU_MEMORY(paces, PMC_EVENTS);
static struct pace_nmis nmis[CPU_MAX];
static u32 running; // sources; streams_lock

static struct pmc_source *mine(const struct sample_source *s)
{
    return container_of(s, struct pmc_source, source);
}

// TSC cycles (low half) consumed by NMIs on this CPU before the current one,
// plus a constant.
static ALWAYS_INLINE u32 nmi_cycles(void)
{
    u32 nmis = this_cpu_read(irq_counts)[VECTOR_NMI].low;
    return this_ledger()->nmi_cycles + nmis * entry_cost.nmi;
}

static u64 counter_due(struct pmu_sampling *sampling,
                       const struct trapframe *tf, u32 periods)
{
    struct pmc_source *s = container_of(sampling, struct pmc_source, sampling);
    u32 cpu = this_cpu_read(id);
    struct pace *p = &paces[cpu][s->index];
    struct sample_hit hit = {
        .tf = tf,
        .ticks = periods * p->merge, // a stretched one is several
        .period = pace_weight(p, periods, sampling->event.kernel),
        .time = rdtsc(),
    };
    sample_take_event(&s->source, &hit);
    pace_charge(&nmis[cpu], p, s->bit, nmi_cycles());
    pace_spent(p, &running, hit.time);
    return pace_next(p, hit.time);
}

// The initial period for about `hz` samples a second: cycles are assumed at the
// TSC's rate, other events at a 16th of it.
static u64 first_period(const struct pmu_event *e, u32 hz, bool *follows)
{
    *follows = e->id != PMU_CYCLES && e->id != PMU_REF_CYCLES;
    u64 cycles = clock_tsc_hz() / hz;
    return *follows ? MAX(cycles / 16, (u64)PACE_PERIOD_MIN) : cycles;
}

static void init_pace(struct pmc_source *s, const struct sample_rate *rate,
                      u64 period, u64 target)
{
    for (u32 i = 0; i < cpu_count; i++) {
        u32 seed = 0;
        if (rate->random)
            random_bytes(&seed, sizeof(seed));
        pace_init(&paces[i][s->index], period, target,
                  rate->random ? seed | 1 : 0,
                  (u32)clock_tsc_hz() / WINDOWS_PER_SECOND);
    }
}

static int pmc_start(const struct sample_source *source,
                     struct sample_rate *rate)
{
    struct pmc_source *s = mine(source);
    struct pmu_sampling *sampling = &s->sampling;
    if (pmu_event_parse(rate->event, &sampling->event))
        return -EINVAL;
    const char *why_not = pmu_event_why_not(&sampling->event);
    if (why_not) {
        log_printf("pmc: %s: %s\n", rate->event, why_not);
        return -EINVAL;
    }
    bool follows = false;
    u64 period = rate->period;
    if (!period)
        period = first_period(&sampling->event, rate->hz, &follows);
    init_pace(s, rate, period, follows ? clock_tsc_hz() / rate->hz : 0);
    sampling->period = period;
    sampling->due = counter_due;
    WRITE_ONCE(running, running + 1);
    int err = pmu_sampling_start(sampling);
    if (err) {
        WRITE_ONCE(running, running - 1);
        return err;
    }
    if (rate->period)
        rate->hz = 0;
    rate->period = follows ? 0 : period;
    return 0;
}

static void pmc_stop(const struct sample_source *source)
{
    pmu_sampling_stop(&mine(source)->sampling);
    WRITE_ONCE(running, running - 1);
}

static u32 pmc_vector(const struct sample_source *s UNUSED)
{
    return VECTOR_NMI;
}

static const char *pmc_why_not(const struct sample_source *s UNUSED)
{
    return pmu_sampling_why_not();
}

#define PMC_SOURCE(number, after)                 \
    {                                             \
        .index = (number), .bit = 1u << (number), \
        .source = {                               \
            .name = "pmc",                        \
            .rank = 400,                          \
            .min_hz = 1,                          \
            .max_hz = 20000,                      \
            .nmi = true,                          \
            .counts = "cycles",                   \
            .next = after,                        \
            .why_not = pmc_why_not,               \
            .vector = pmc_vector,                 \
            .start = pmc_start,                   \
            .stop = pmc_stop,                     \
        },                                        \
    }
#define PMC_SOURCE_BEFORE(n) PMC_SOURCE((n)-1, &pmc_sources[n].source)

static struct pmc_source pmc_sources[PMC_EVENTS] = {
    PMC_SOURCE_BEFORE(1), PMC_SOURCE_BEFORE(2), PMC_SOURCE_BEFORE(3),
    PMC_SOURCE_BEFORE(4), PMC_SOURCE_BEFORE(5), PMC_SOURCE_BEFORE(6),
    PMC_SOURCE_BEFORE(7), PMC_SOURCE(7, NULL),
};
LINKER_SET_ADD_PART(sample_sources, pmc, pmc_sources[0].source);
