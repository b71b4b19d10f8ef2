// The calibration's windows on a model of a machine that is stopped for a part
// of each period, with counters that wrap late or early.
#include "test.h"

#define rdtsc cpu_rdtsc
#include "arch/instructions.h"
#undef rdtsc
static u64 rdtsc(void);
#include "arch/i386/clock/calibration_window.c"

#define NS_PER_MS 1000000ull
#define NS_PER_SEC 1000000000ull
#define TSC_NS 20u   // what reading the TSC takes
#define READ_NS 900u // a counter
#define TSC_HZ 2445410000ull
#define LAPIC_HZ 999999999ull

static struct {
    u64 ns;         // true time
    u64 run, stop;  // ns; stop 0: it runs always
    u64 phase;      // of the stops
    u64 lapic_from; // when the LAPIC timer was started
} pc;

// Scales by seconds and the rest, as 64 bits are not enough.
static u64 ticks(u64 ns, u64 hz)
{
    return ns / NS_PER_SEC * hz + ns % NS_PER_SEC * hz / NS_PER_SEC;
}

static void pass(u64 ns)
{
    pc.ns += ns;
    if (pc.stop && (pc.ns + pc.phase) % (pc.run + pc.stop) >= pc.run)
        pc.ns += pc.run + pc.stop - (pc.ns + pc.phase) % (pc.run + pc.stop);
}

static u64 rdtsc(void)
{
    pass(TSC_NS);
    return ticks(pc.ns, TSC_HZ);
}

static u64 read_hpet(void)
{
    pass(READ_NS);
    return ticks(pc.ns, 100000000);
}

static u64 read_pm_timer(void)
{
    pass(READ_NS);
    return ticks(pc.ns, 3579545);
}

static u64 read_pit(void)
{
    pass(READ_NS);
    return ticks(pc.ns, 1193182);
}

static void start_lapic(u32 count UNUSED)
{
    pc.lapic_from = pc.ns;
}

static u32 read_the_lapic(void)
{
    pass(READ_NS);
    u64 passed = ticks(pc.ns - pc.lapic_from, LAPIC_HZ);
    return passed > ~0u ? 0 : ~0u - (u32)passed;
}

static const struct down_counter lapic = { start_lapic, read_the_lapic };
static struct timecounter hpet = { .hz = 100000000,
                                   .mask = 0xffffffff,
                                   .read = read_hpet };
static struct timecounter pm_timer = { .hz = 3579545,
                                       .mask = 0xffffff,
                                       .read = read_pm_timer };
static struct timecounter pit = { .hz = 1193182,
                                  .mask = 0xffff,
                                  .read = read_pit };

static u64 off_ppm(u64 hz, u64 true_hz)
{
    u64 off = hz > true_hz ? hz - true_hz : true_hz - hz;
    return off * 1000000 / true_hz;
}

static struct window measure_at(struct timecounter *by, double run_ms,
                                double stop_ms, u32 phase)
{
    struct timecounter *voters[] = { by, &pm_timer, &pit };
    struct window w;
    calibration_lapic = &lapic;
    pc.ns = 5 * NS_PER_SEC;
    pc.run = (u64)(run_ms * NS_PER_MS);
    pc.stop = (u64)(stop_ms * NS_PER_MS);
    pc.phase = phase * 137911ull;
    assert_true(calibration_measure(voters, 3, &w));
    return w;
}

static void undisturbed(void **state UNUSED)
{
    struct timecounter *all[] = { &hpet, &pm_timer, &pit };
    for (u32 i = 0; i < 3; i++) {
        struct window w = measure_at(all[i], 1, 0, i);
        assert_true(w.error_ppm < 200);
        assert_true(off_ppm(w.tsc_hz, TSC_HZ) <= w.error_ppm);
        u32 lapic_hz = calibration_lapic_hz(&w, TSC_HZ);
        assert_true(off_ppm(lapic_hz, LAPIC_HZ) < 200);
        assert_true(pc.ns < 5 * NS_PER_SEC + 100 * NS_PER_MS);
    }
}

// A busy host: one window is enough, wherever the stops are.
static void stops_harm_no_wide_counter(void **state UNUSED)
{
    struct timecounter *all[] = { &hpet, &pm_timer };
    for (u32 i = 0; i < 600; i++) {
        struct window w = measure_at(all[i % 2], 1.5, i % 3 ? 40 : 200, i);
        assert_true(w.error_ppm < 100);
        assert_true(off_ppm(w.tsc_hz, TSC_HZ) <= w.error_ppm + 1);
        u32 lapic_hz = calibration_lapic_hz(&w, TSC_HZ);
        assert_true(off_ppm(lapic_hz, LAPIC_HZ) < 200);
        assert_true(pc.ns < 5 * NS_PER_SEC + 900 * NS_PER_MS);
    }
}

// Stops that end before it wraps; that let a whole window pass between them.
static void stops_that_the_pit_survives(void **state UNUSED)
{
    for (u32 i = 0; i < 300; i++) {
        struct window w = measure_at(&pit, 30, 60, i);
        assert_true(w.error_ppm < 200);
        assert_true(off_ppm(w.tsc_hz, TSC_HZ) <= w.error_ppm + 1);
    }
}

// Each window loses periods: the rate is not said to be known, and the slowest
// is kept.
static void stops_that_it_does_not(void **state UNUSED)
{
    for (u32 i = 0; i < 30; i++) {
        struct window w = measure_at(&pit, 1.5, 60 + i, i);
        assert_int_equal(w.error_ppm, CALIBRATION_UNKNOWN_PPM);
        assert_true(w.tsc_hz > TSC_HZ);
    }
}

static void voters_that_may_have_wrapped(void **state UNUSED)
{
    struct timecounter *voters[] = { &hpet, &pm_timer, &pit };
    struct window w = measure_at(&hpet, 1, 0, 0);
    for (u32 i = 0; i < 3; i++) {
        struct vote v = calibration_vote_of(&w, voters, i);
        assert_true(off_ppm(v.tsc_hz, TSC_HZ) <= v.error_ppm);
    }
    w = measure_at(&hpet, 1.5, 40, 7);
    assert_true(calibration_vote_of(&w, voters, 1).tsc_hz > 0);
    assert_int_equal(calibration_vote_of(&w, voters, 2).tsc_hz, 0);
}

// Also after it has counted down to 0.
static void the_lapic_by_the_tsc(void **state UNUSED)
{
    struct window w = { 0 };
    pc.stop = 0;
    calibration_measure_lapic(&w, TSC_HZ / 50);
    assert_true(off_ppm(calibration_lapic_hz(&w, TSC_HZ), LAPIC_HZ) < 200);
    pc.run = 10 * NS_PER_MS;
    pc.stop = 5 * NS_PER_SEC;
    pc.phase = pc.run + pc.stop - pc.ns % (pc.run + pc.stop);
    calibration_measure_lapic(&w, TSC_HZ / 50);
    assert_int_equal(calibration_lapic_hz(&w, TSC_HZ), 0);
}

static u64 read_nothing(void)
{
    pass(READ_NS);
    return 4711;
}

static void a_counter_that_stands(void **state UNUSED)
{
    struct timecounter dead = { .hz = 1000,
                                .mask = 0xffff,
                                .read = read_nothing };
    struct timecounter *voters[] = { &dead };
    struct window w;
    pc.stop = 0;
    assert_false(calibration_measure(voters, 1, &w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undisturbed),
        cmocka_unit_test(stops_harm_no_wide_counter),
        cmocka_unit_test(stops_that_the_pit_survives),
        cmocka_unit_test(stops_that_it_does_not),
        cmocka_unit_test(voters_that_may_have_wrapped),
        cmocka_unit_test(the_lapic_by_the_tsc),
        cmocka_unit_test(a_counter_that_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
