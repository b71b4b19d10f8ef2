// The sampling throttle: expensive sampling, and single long readings.
// link: lib/random_distance.c
#include "test.h"

#include "kernel/profile/throttle.h"

#include <math.h>

#define WINDOW 30000000u // 10 ms of a CPU of 3 GHz

static struct throttle t;
static u32 now, sum;

static double weights; // of all samples

// Takes n interrupts, `period` cycles apart, that cost `cost` each. Returns how
// many are refused.
static u32 interrupts(u32 n, u32 period, u32 cost)
{
    u32 refused = 0;

    for (u32 i = 0; i < n; i++) {
        u32 weight = 1;
        throttle_add(&t, now, sum);
        if (throttle_is_over(&t))
            weight = throttle_refuses(&t) ? 0 : throttle_draw(&t, now);
        weights += weight;
        refused += !weight;
        if (weight) {
            throttle_charge(&t);
            sum += cost;
        }
        now += period;
    }
    return refused;
}

static void begin(u32 beside)
{
    now = (u32)random_u64();
    sum = (u32)random_u64();
    throttle_init(&t, WINDOW, beside, (u32)random_u64());
    interrupts(1000, WINDOW / 200, 1000);
}

static void cheap_samples(void **state UNUSED)
{
    begin(100);
    assert_int_equal(interrupts(100000, WINDOW / 200, 1000), 0);
    // A fifth of the CPU, inside and outside the sum.
    begin(10000);
    assert_int_equal(interrupts(100000, WINDOW / 200, 20000), 0);
}

// The host takes the CPU during a sample, for a short or very long time; then
// several times in one window.
static void stolen_time(void **state UNUSED)
{
    for (u32 stolen = 1000; stolen < 2000000000; stolen *= 3) {
        begin(100);
        for (u32 i = 0; i < 100; i++) {
            sum += stolen;
            now += stolen;
            assert_int_equal(interrupts(400, WINDOW / 200, 1000), 0);
        }
        begin(100);
        for (u32 i = 0; i < 5; i++) {
            sum += stolen;
            assert_int_equal(interrupts(5, WINDOW / 200, 1000), 0);
        }
    }
}

// The host takes the CPU in each sample, and samples are not so many.
static void stolen_at_a_low_rate(void **state UNUSED)
{
    for (u32 stolen = 1000; stolen < 2000000000; stolen *= 3) {
        begin(100);
        assert_int_equal(interrupts(1000, WINDOW / 2 + 1, stolen), 0);
    }
}

// All samples of less than half a window are long: two virtual CPUs take turns
// on one CPU of the host, and each sample ends a turn.
static void stolen_in_turns(void **state UNUSED)
{
    for (u32 i = 0; i < 100; i++) {
        begin(100);
        interrupts(random_below(400), WINDOW / 200, 1000);
        assert_int_equal(interrupts(90, WINDOW / 200, WINDOW / 250), 0);
        assert_int_equal(interrupts(1000, WINDOW / 200, 1000), 0);
    }
}

// Expensive samples take a quarter of the CPU, and at first a window more, at
// any number per window.
static void dear_samples(void **state UNUSED)
{
    for (u32 n = 10; n <= 200; n *= 2) {
        for (u32 part = 2; part <= 10; part++) {
            const u32 period = WINDOW / n, cost = period / 10 * part;
            begin(0);
            interrupts(2 * n, period, cost);
            u32 refused = interrupts(100 * n, period, cost);
            double share = (100.0 * n - refused) * cost / (100.0 * WINDOW);
            if (part == 2)
                assert_int_equal(refused, 0);
            else
                assert_true(share > 0.25 - 0.01 * part / n &&
                            share < 0.26 + 0.01 * part / n);
        }
    }
}

// The program to be sampled runs now and then, for any number of windows: what
// sampling does not take meanwhile is not saved up for later.
static void dear_samples_in_bursts(void **state UNUSED)
{
    const u32 n = 100, period = WINDOW / n, cost = period / 2;
    for (u32 round = 0; round < 100; round++) {
        u64 taken = 0, begun = 0;
        begin(0);
        for (u32 i = 0; i < 1000; i++) {
            u32 runs = 1 + random_below(3 * n), waits = random_below(2 * n);
            taken += runs - interrupts(runs, period, cost);
            interrupts(waits, period, 0);
            begun += runs + waits;
        }
        // The quarter, a window, and each burst's last sample.
        assert_true(taken * cost <=
                    (begun * period) / 4 + WINDOW + 1000ull * cost);
        begin(0);
        interrupts(100 * n, period, 0);
        // Four of the eight windows go by until the account is full; of the
        // ticks of the other four half are refused, by lot.
        assert_in_range(interrupts(8 * n, period, cost), 130, 270);
    }
}

// The samples taken stand for those that are not, of each code by itself,
// however dear that is and however it takes turns with code that is not.
static void weights_are_right(void **state UNUSED)
{
    const u32 n = 200, period = WINDOW / n;
    double of_dear = 0, of_cheap = 0, dear = 0, cheap = 0;
    u32 refused = 0;

    begin(0);
    for (u32 round = 0; round < 4000; round++) {
        u32 turns = 1 + random_below(round % 2 ? 3 : 300);
        weights = 0;
        refused += interrupts(turns, period, period / 10 * 9);
        of_dear += weights;
        dear += turns;
        weights = 0;
        turns = 1 + random_below(round % 2 ? 3 : 300);
        refused += interrupts(turns, period, period / 50);
        of_cheap += weights;
        cheap += turns;
    }
    printf("# dear %.4f, cheap %.4f, refused %.3f\n", of_dear / dear,
           of_cheap / cheap, refused / (dear + cheap));
    // Seven standard deviations, of weights of 4.
    assert_true(fabs(of_dear / dear - 1) < 7 * sqrt(4 / dear));
    assert_true(fabs(of_cheap / cheap - 1) < 7 * sqrt(4 / cheap));
    assert_true(refused > (dear + cheap) / 4);
}

// The time since the end of the last handler, outside of handlers.
static void outside_of_handlers(void **state UNUSED)
{
    begin(0);
    for (u32 i = 0; i < 1000; i++) {
        u32 cost = random_below(100000), since = random_below(2000);
        now += 100000;
        throttle_since(&t, now, sum);
        sum += cost;
        now += cost + since;
        assert_int_equal(throttle_since(&t, now, sum), since);
    }
}

// Cost outside the sum counts too.
static void beside_the_sum(void **state UNUSED)
{
    begin(WINDOW / 200 / 2);
    u32 refused = interrupts(20000, WINDOW / 200, 0);
    assert_in_range(refused, 20000 * 45 / 100, 20000 * 55 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cheap_samples),
        cmocka_unit_test(stolen_time),
        cmocka_unit_test(stolen_at_a_low_rate),
        cmocka_unit_test(stolen_in_turns),
        cmocka_unit_test(dear_samples),
        cmocka_unit_test(dear_samples_in_bursts),
        cmocka_unit_test(beside_the_sum),
        cmocka_unit_test(weights_are_right),
        cmocka_unit_test(outside_of_handlers),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
