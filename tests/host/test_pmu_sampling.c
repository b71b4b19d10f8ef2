// Sampling counters on models: every period gives a sample, and handlers with a
// wrong order of steps lose samples.
//
// link: arch/i386/pmu/detect.c arch/i386/pmu/describe.c
// link: arch/i386/pmu/models.c arch/i386/pmu/events.c
// link: arch/i386/pmu/counter.c arch/i386/pmu/overflow.c
// link: tests/host/pmu_model.c tests/host/pmu_model_registers.c
// link: tests/host/pmu_model_types.c
#include "pmu_sampled.h"

// --- one event --------------------------------------------------------------

// Every period gives a sample, and no NMI arrives after the stop.
static void periods_add_up(const struct model_type *type, u64 period, u64 steps)
{
    begin(type);
    model.user = true;
    u32 n = sample("instructions:u", period);
    model_run(steps);
    pmu_stop(&cpu, n);
    assert_in_range(weights[n], steps / period - 1, steps / period + 1);
    u64 then = samples[n], nmis = model.nmis;
    model_run(10 * period);
    assert_int_equal(samples[n], then);
    assert_int_equal(model.nmis, nmis);
    assert_int_equal(unknown, 0);
    assert_int_equal(model.faults, 0);
    assert_true(model.lvt_masked);
    assert_int_equal(cpu.enabled | cpu.sampling, 0);
}

static void samples_of_all(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        periods_add_up(types[i], 1000, 1000000);
        periods_add_up(types[i], 999983, 50000000);
        // Longer than a load without full-width writes can be, and than a
        // 40-bit register can hold.
        periods_add_up(types[i], 0x7fffffff, 0x7fffffffull * 5 + 10);
        periods_add_up(types[i], 0x80000001, 0x80000001ull * 5 + 10);
        periods_add_up(types[i], 0x12345678901, 0x12345678901ull * 3 + 10);
    }
}

// A period shorter than the handler: weights account for skipped periods.
static void short_periods(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        for (u64 period = 1; period < 400; period = period * 3 / 2 + 1) {
            begin(types[i]);
            u64 start = model.time;
            u32 n = sample("cycles", period);
            model_run(300);
            // With a gate the handler is not counted.
            u64 most = (model.time - start) / period + 1;
            pmu_stop(&cpu, n);
            assert_in_range(weights[n], 300 / period, most);
            assert_int_equal(unknown, 0);
            assert_int_equal(model.faults, 0);
        }
    }
}

// Periods keep their grid: events counted after an overflow are subtracted from
// the next period.
static void no_drift(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin(types[i]);
        model.user = true;
        model.nmi_delay = 37; // user instructions until the NMI
        u32 n = sample("instructions:u", 1009);
        model_run(1009 * 5000);
        assert_in_range(weights[n], 4999, 5000);
        pmu_stop(&cpu, n);
    }
}

static void period_may_change(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin(types[i]);
        model.user = true;
        u32 n = sample("instructions:u", 1000);
        next_period = 3000;
        model_run(1000 + 3000 * 20 + 10);
        assert_int_equal(samples[n], 21);
        next_period = 100;
        model_run(3000 + 100 * 20);
        assert_in_range(samples[n], 21 + 20, 21 + 22);
        pmu_stop(&cpu, n);
    }
}

// --- freezing ---------------------------------------------------------------

static void freezing(const struct model_type *type)
{
    begin(type);
    model.debugctl = 1 << 12; // set by the firmware
    model.user = true;
    u32 n = sample("instructions:u", 1000);
    assert_int_equal(model.debugctl, 0);
    model_run(100000);
    assert_in_range(samples[n], 99, 100);
    model.debugctl = 1 << 12; // set again while sampling
    model_run(100000);
    assert_in_range(samples[n], 199, 200);
    assert_int_equal(unknown, 0);
    pmu_stop(&cpu, n);
}

static void freeze_bits(void **state UNUSED)
{
    freezing(&model_v2);
    freezing(&model_v4);
    freezing(&model_zen4);
    // The model does freeze: without acknowledgement, counting stops.
    begin(&model_v4);
    u32 n = sample("instructions", 1000);
    model.debugctl = 1 << 12;
    cpu.pmu.other_status &= ~(1ull << 59);
    model_run(100000);
    assert_int_equal(samples[n], 1);
}

// --- wrong orders -----------------------------------------------------------

static u32 only; // the one counter of these handlers

// Reloads and restarts the counter before LVT PC is unmasked.
static void reload_before_unmask(void)
{
    const struct pmu *p = &cpu.pmu;

    if (p->global_status)
        p->io->write(p->global_reset, pmu_global_bits(cpu.sampling));
    samples[only]++;
    pmu_load(&cpu, &cpu.slot[only], (u32)cpu.slot[only].period);
    p->io->unmask_lvt();
}

static void never_acknowledge(void)
{
    cpu.pmu.io->unmask_lvt();
    samples[only]++;
    pmu_load(&cpu, &cpu.slot[only], (u32)cpu.slot[only].period);
}

static void never_unmask(void)
{
    const struct pmu *p = &cpu.pmu;

    samples[only]++;
    p->io->write(p->global_reset, pmu_global_bits(cpu.sampling));
    pmu_load(&cpu, &cpu.slot[only], (u32)cpu.slot[only].period);
}

static u64 with_handler(const struct model_type *type, u64 period,
                        void (*handler)(void))
{
    begin(type);
    model.handler = handler;
    only = sample("cycles", period);
    model_run(100000);
    return samples[only];
}

static void wrong_orders_lose(void **state UNUSED)
{
    // Without a gate, or with it open, a period of 10 ends before LVT PC is
    // unmasked 20 steps later. Its interrupt is lost, and no other follows.
    assert_int_equal(with_handler(&model_v1, 10, reload_before_unmask), 1);
    assert_int_equal(with_handler(&model_p6, 10, reload_before_unmask), 1);
    assert_int_equal(with_handler(&model_v2, 10, reload_before_unmask), 1);
    assert_true(model.lost > 0);
    assert_int_equal(with_handler(&model_v2, 1000, never_acknowledge), 1);
    assert_int_equal(with_handler(&model_v4, 1000, never_acknowledge), 1);
    assert_int_equal(with_handler(&model_zen4, 1000, never_acknowledge), 1);
    assert_int_equal(with_handler(&model_v2, 1000, never_unmask), 1);
    // The right order keeps sampling.
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        assert_true(with_handler(types[i], 10, on_nmi) > 500);
        assert_true(with_handler(types[i], 1000, on_nmi) > 85);
        assert_int_equal(unknown, 0);
    }
}

// Scans for overflows before it unmasks.
static void scan_before_unmask(void)
{
    const struct pmu *p = &cpu.pmu;
    u32 overflowed = pmu_take_overflows(&cpu, cpu.sampling);

    p->io->unmask_lvt();
    for (u32 n = 0; n < 2; n++) {
        if (overflowed & 1u << n) {
            samples[n]++;
            pmu_load(&cpu, &cpu.slot[n], (u32)cpu.slot[n].period);
        }
    }
}

// Whether two counters, one `behind` steps later, both keep sampling on a CPU
// without status bits.
static bool both_survive(const struct model_type *type, u32 behind,
                         void (*handler)(void))
{
    begin(type);
    model.handler = handler;
    model.user = true;
    sample("instructions:u", 1000);
    sample("cycles", 1000 + behind);
    model_run(200000);
    u64 first = samples[0], second = samples[1];
    model_run(100000);
    assert_int_equal(unknown, 0);
    return samples[0] >= first + 70 && samples[1] >= second + 70;
}

static void two_counters(void **state UNUSED)
{
    bool wrong = true;

    for (u32 behind = 0; behind < 300; behind++) {
        wrong = wrong && both_survive(&model_v1, behind, scan_before_unmask);
        assert_true(both_survive(&model_v1, behind, on_nmi));
        assert_true(both_survive(&model_p6, behind, on_nmi));
    }
    assert_false(wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_all), cmocka_unit_test(short_periods),
        cmocka_unit_test(no_drift),       cmocka_unit_test(period_may_change),
        cmocka_unit_test(freeze_bits),    cmocka_unit_test(wrong_orders_lose),
        cmocka_unit_test(two_counters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
