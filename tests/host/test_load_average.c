// Load averages against floating-point arithmetic.
#include "test.h"

#include "lib/load_average.h"

// C (lib/load_average.h), to the precision of a double.
static const double decay[LOAD_AVERAGES] = { __builtin_exp(-5.0 / 60),
                                             __builtin_exp(-5.0 / 300),
                                             __builtin_exp(-5.0 / 900) };

static double distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

static u32 nearest(double x)
{
    return (u32)(x + 0.5);
}

// A load of 1 becomes the constant itself after one update.
static void constants_are_the_nearest(void **state UNUSED)
{
    for (unsigned i = 0; i < LOAD_AVERAGES; i++) {
        assert_int_equal(load_average(i, LOAD_ONE, 0),
                         nearest(decay[i] * LOAD_ONE));
        assert_int_equal(load_average(i, 0, 1),
                         LOAD_ONE - nearest(decay[i] * LOAD_ONE));
    }
}

// Random run queues. The allowed error is that of rounding the constant and
// each result (half a unit an update), and decays as the load does.
static void histories_agree_with_real_numbers(void **state UNUSED)
{
    for (int round = 0; round < 200; round++) {
        u32 most = 1 + random_below(200), load[LOAD_AVERAGES] = { 0 };
        double real[LOAD_AVERAGES] = { 0 }, off[LOAD_AVERAGES] = { 0 };
        u32 runnable = 0;
        for (int update = 0; update < 2000; update++) {
            if (random_below(8) == 0)
                runnable = random_below(most);
            for (unsigned i = 0; i < LOAD_AVERAGES; i++) {
                double c = decay[i], unit = LOAD_ONE;
                double constant_off = distance(c, nearest(c * unit) / unit) *
                                      distance(load[i], runnable * unit);
                off[i] = off[i] * c + constant_off + 0.5;
                real[i] = real[i] * c + runnable * unit * (1 - c);
                load[i] = load_average(i, load[i], runnable);
                assert_true(distance(load[i], real[i]) <= off[i] + 1e-6);
                // The displayed precision is 0.01.
                assert_true(off[i] < LOAD_ONE * (0.005 + most * 0.0002));
            }
        }
    }
}

// Figure 4.1 of the monitoring thesis, GNU/Linux: from 0, one thread runs.
static void one_thread_for_a_while(void **state UNUSED)
{
    static const u32 minutes[LOAD_AVERAGES] = { 1, 5, 15 };

    for (unsigned i = 0; i < LOAD_AVERAGES; i++) {
        u32 load = 0, last;
        for (u32 n = minutes[i] * 60 / LOAD_PERIOD_SECONDS; n > 0; n--)
            load = load_average(i, load, 1);
        assert_in_range(load, 0.631 * LOAD_ONE, 0.633 * LOAD_ONE); // 1 - 1/e
        for (int n = 0; n < 5000; n++) { // approaches 1 from below
            last = load;
            load = load_average(i, load, 1);
            assert_in_range(load, last, LOAD_ONE);
        }
        assert_in_range(load, 0.998 * LOAD_ONE, LOAD_ONE);
    }
}

static void the_largest_load(void **state UNUSED)
{
    const u32 most = 65535;

    for (unsigned i = 0; i < LOAD_AVERAGES; i++) {
        assert_int_equal(load_average(i, most * LOAD_ONE, most),
                         most * LOAD_ONE);
        assert_true(load_average(i, 0, most) <= most * LOAD_ONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_are_the_nearest),
        cmocka_unit_test(histories_agree_with_real_numbers),
        cmocka_unit_test(one_thread_for_a_while),
        cmocka_unit_test(the_largest_load),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
