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
static struct pace_nmis nmis;
static u32 running; // events
static u32 sum;     // steps spent in NMIs
static bool endless;

static u64 on_paced_sample(struct pmu_sampling *user,
                           const struct trapframe *tf UNUSED, u32 weight)
{
    u32 n = (u32)(user - users);

    model_run(SAMPLE);
    samples[n]++;
    weights[n] += weight;
    pace_charge(&nmis, &paces[n], 1u << n, sum);
    pace_spent(&paces[n], &running, model.time);
    return pace_next(&paces[n], model.time);
}

static void on_paced_nmi(void)
{
    u64 began = model.time;

    model_run(ENTRY);
    if (!pmu_overflow(&cpu, NULL, model.eip))
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
    use_counters(on_paced_sample);
    model.handler = on_paced_nmi;
    model.user = true;
    endless = false;
    running = 0;
    nmis = (struct pace_nmis){ 0 };
}

static void sample_paced(const char *event, u64 period)
{
    struct pmu_code code = code_of(event);
    u32 n = pmu_choose(&cpu, code.counters);

    running++;
    pace_init(&paces[n], period, 0, 0, WINDOW);
    pmu_sample_start(&cpu, n, &code, period);
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

// Events that come as often get as many samples, however short their period.
static void equal_shares(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin_paced(types[i]);
        sample_paced("cycles", 1);
        sample_paced("instructions", 1);
        assert_in_range(taken(), 3, 30);
        for (u32 left = cpu.sampling; left > 0; left &= left - 1) {
            u64 n = samples[__builtin_ctz(left)], all = 0;
            for (u32 k = 0; k < PMU_COUNTERS; k++)
                all += samples[k];
            assert_in_range(n * 100 / all, 40, 60);
        }
    }
}

// A frequent event is sampled less, a rare one beside it as asked.
static void rare_beside_frequent(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin_paced(types[i]);
        sample_paced("cycles", 1);
        u32 frequent = cpu.sampling;
        sample_paced("cache-misses", 3000); // each 48,000 steps
        assert_in_range(taken(), 1, 30);
        u32 rare = (u32)__builtin_ctz(cpu.sampling & ~frequent);
        assert_int_equal(paces[rare].merge, 1);
    }
}

// The period adapts before the CPU is lost to the program for long.
static void no_burst(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin_paced(types[i]);
        u64 start = model.time;
        sample_paced("cycles", 1);
        model_run(WINDOW / 10);
        assert_true(model.time - start < WINDOW / 4);
    }
}

// Functions of the kernel that a program calls: the length of each, in steps.
static const u32 lengths[] = { 3000, 100, 300, 50 }; // the first: the program's
static u64 weight_in[ARRAY_SIZE(lengths)];
static u32 called;

static u64 on_function_sample(struct pmu_sampling *user,
                              const struct trapframe *tf, u32 weight)
{
    weight_in[called] += pace_weight(&paces[user - users], weight, true);
    return on_paced_sample(user, tf, weight);
}

static void on_function_nmi(void)
{
    u64 began = model.time;

    model_run(ENTRY);
    assert_true(pmu_overflow(&cpu, NULL, model.eip));
    model_run(EXIT);
    sum += (u32)(model.time - began);
}

static void call_functions(void)
{
    for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
        called = i;
        model.user = i == 0;
        model_run(lengths[i]);
    }
}

// The kernel's instructions are counted in the NMI, too: its function that was
// interrupted is not charged with them.
static void kernel_functions(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        u64 all = 0;
        begin_paced(types[i]);
        use_counters(on_function_sample);
        model.handler = on_function_nmi;
        memset(weight_in, 0, sizeof(weight_in));
        sample_paced("instructions:k", 1);
        for (u32 k = 0; k < 6000; k++)
            call_functions();
        for (u32 k = 1; k < ARRAY_SIZE(lengths); k++)
            all += weight_in[k];
        assert_int_equal(weight_in[0], 0);
        for (u32 k = 1; k < ARRAY_SIZE(lengths); k++) {
            u64 truth = lengths[k] * 1000 / 450;
            assert_in_range(weight_in[k] * 1000 / all, truth - 10, truth + 10);
        }
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
        cmocka_unit_test(any_period),   cmocka_unit_test(two_events),
        cmocka_unit_test(equal_shares), cmocka_unit_test(rare_beside_frequent),
        cmocka_unit_test(no_burst),     cmocka_unit_test(kernel_functions),
        cmocka_unit_test(as_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
