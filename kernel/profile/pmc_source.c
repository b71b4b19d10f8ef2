// Sample source "pmc": every CPU's performance counters, an NMI after each
// period of events. Sees code that has interrupts off, and what code causes:
// misses of caches and branches. Halted CPUs count no cycles and are not
// interrupted.

#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/pmu.h"
#include "kernel/errno.h"
#include "kernel/fs/devfs.h"
#include "kernel/init/log.h"
#include "kernel/profile/pace.h"
#include "kernel/profile/sample.h"

#define WINDOWS_PER_SECOND 100

static const struct sample_source pmc_source;

// Each by its own CPU's NMIs while the source runs.
static struct {
    struct pace pace;
    u64 period; // the one that is under way
    u32 stretch;
} per_cpu[CPU_MAX];

static u64 due(const struct trapframe *tf, u32 periods)
{
    u64 began = rdtsc();
    u32 cpu = this_cpu()->id;
    struct pace *p = &per_cpu[cpu].pace;
    struct hit h;
    // A stretched period stands for several.
    hit_set(&h, tf, periods << per_cpu[cpu].stretch,
            periods * per_cpu[cpu].period, began);
    sample_take(&pmc_source, &h);
    u64 now = rdtsc();
    pace_spent(p, (u32)(now - began), now);
    per_cpu[cpu].stretch = p->stretch;
    per_cpu[cpu].period = pace_next(p, began);
    return per_cpu[cpu].period;
}

// A period that gives about `hz` samples a second, for a start: cycles are
// counted at the TSC's rate, other events more seldom.
static u64 first_period(const struct pmu_event *e, u32 hz, bool *follows)
{
    *follows = e->id != PMU_CYCLES && e->id != PMU_REF_CYCLES;
    u64 cycles = clock_tsc_hz() / hz;
    return *follows ? MAX(cycles / 16, (u64)PACE_PERIOD_MIN) : cycles;
}

static int pmc_start(const struct sample_source *s UNUSED,
                     struct sample_rate *rate)
{
    struct pmu_event e;
    if (pmu_event_parse(rate->event[0] ? rate->event : "cycles", &e))
        return -EINVAL;
    const char *why_not = pmu_event_why_not(&e);
    if (why_not) {
        log_printf("pmc: %s: %s\n", rate->event, why_not);
        return -EINVAL;
    }
    bool follows = false;
    u64 period = rate->period;
    if (!period)
        period = first_period(&e, rate->hz, &follows);
    u64 target = follows ? clock_tsc_hz() / rate->hz : 0;
    for (u32 i = 0; i < cpu_count; i++) {
        u32 seed = 0;
        if (rate->random)
            random_bytes(&seed, sizeof(seed));
        pace_init(&per_cpu[i].pace, period, target, rate->random ? seed | 1 : 0,
                  (u32)clock_tsc_hz() / WINDOWS_PER_SECOND);
        per_cpu[i].period = period;
        per_cpu[i].stretch = 0;
    }
    int err = pmu_sampling_start(&e, period, due);
    if (err)
        return err;
    if (rate->period)
        rate->hz = 0;
    rate->period = follows ? 0 : period;
    return 0;
}

static void pmc_stop(const struct sample_source *s UNUSED)
{
    pmu_sampling_stop();
}

static const char *pmc_why_not(const struct sample_source *s UNUSED)
{
    return pmu_sampling_why_not();
}

static const struct sample_source pmc_source = {
    .name = "pmc",
    .rank = 400,
    .min_hz = 1,
    .max_hz = 20000,
    .nmi = true,
    .counts = true,
    .why_not = pmc_why_not,
    .start = pmc_start,
    .stop = pmc_stop,
};
SAMPLE_SOURCE(pmc_source);
