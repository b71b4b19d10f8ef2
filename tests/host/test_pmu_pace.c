// Periods shorter than the handler of the counter's NMI, on models: with any
// requested period, the interrupted program makes progress.
//
// link: arch/i386/pmu/detect.c arch/i386/pmu/events.c arch/i386/pmu/counter.c
// link: arch/i386/pmu/overflow.c tests/host/pmu_model.c kernel/profile/pace.c
// link: arch/i386/pmu/describe.c arch/i386/pmu/models.c lib/random_distance.c
// link: tests/host/pmu_model_registers.c tests/host/pmu_model_types.c
#include "pmu_sampled.h"

#include "kernel/profile/pace.h"

#define ENTRY 60 // steps of a handler, besides registers (20 each) and samples
#define EXIT 60
#define SAMPLE 126
#define WINDOW 1000000
#define STORM 1000000 // number of NMIs taken for an endless loop

static struct pace paces[PMU_COUNTERS];
static u32 sum; // steps spent in NMIs
static bool endless;

static u64 on_paced_sample(void *arg UNUSED, u32 n, u32 weight)
{
    model_run(SAMPLE);
    samples[n]++;
    weights[n] += weight;
    pace_spent(&paces[n], sum, model.time);
    return pace_next(&paces[n], model.time);
}

static void on_paced_nmi(void)
{
    u64 began = model.time;

    model_run(ENTRY);
    if (!pmu_overflow(&cpu, model.eip, on_paced_sample, NULL))
        unknown++;
    model_run(EXIT);
    sum += (u32)(model.time - began);
    if (model.nmis > STORM) {
        endless = true;
        cpu.pmu.io->mask_lvt();
    }
}

static void begin_paced(const struct model_type *type)
{
    begin(type);
    model.handler = on_paced_nmi;
    model.user = true;
    endless = false;
}

static void sample_paced(const char *event, u64 period)
{
    u32 n = sample(event, period);

    pace_init(&paces[n], period, 0, 0, WINDOW);
}

// The share of time in NMIs, in per cent, once the period has adapted.
static u64 taken(void)
{
    model_run(20 * WINDOW);
    u64 start = model.time, steps = 20 * WINDOW;
    model_run(steps);
    assert_false(endless);
    u64 all = model.time - start;
    return (all - steps) * 100 / all;
}

static void any_period(void **state UNUSED)
{
    static const u64 periods[] = { 1, 2, 17, 100, 500, 1000, 3000 };

    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        for (u32 k = 0; k < ARRAY_SIZE(periods); k++) {
            begin_paced(types[i]);
            sample_paced("cycles", periods[k]);
            assert_in_range(taken(), 3, 30);
        }
    }
}

// Together they may take only what one event may.
static void two_events(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin_paced(types[i]);
        sample_paced("cycles", 100);
        sample_paced("instructions", 70);
        assert_in_range(taken(), 3, 30);
    }
}

// A period that is long enough is used as requested.
static void as_asked(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin_paced(types[i]);
        sample_paced("instructions:u", 10000);
        model_run(100 * WINDOW);
        u64 n = 0;
        for (u32 k = 0; k < PMU_COUNTERS; k++)
            n += samples[k];
        assert_in_range(n, 9999, 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_period),
        cmocka_unit_test(two_events),
        cmocka_unit_test(as_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
