// The expected number of samples.
#include "test.h"

#include "kernel/profile/expected_samples.h"

#define HZ 2600000000ull
#define YEAR (365ull * 86400)

static void ticks(void **state UNUSED)
{
    assert_int_equal(expected_ticks(0, HZ, 1000), 0);
    assert_int_equal(expected_ticks(HZ, HZ, 1000), 1000);
    assert_int_equal(expected_ticks(HZ * 5 / 2, HZ, 1), 3);
    assert_int_equal(expected_ticks(HZ / 2000 - 1, HZ, 1000), 0);
    assert_int_equal(expected_ticks(HZ / 2000 + 1, HZ, 1000), 1);
    // 32 CPUs at the highest rate.
    assert_int_equal(expected_ticks(YEAR * 32 * HZ, HZ, 20000),
                     YEAR * 32 * 20000);
}

static void shares(void **state UNUSED)
{
    assert_int_equal(expected_share(1000, 0, 0), 0);
    assert_int_equal(expected_share(1000, 0, 7), 0);
    assert_int_equal(expected_share(1000, 7, 0), 1000);
    assert_int_equal(expected_share(1000, 1, 3), 250);
    assert_int_equal(expected_share(999, 1, 1), 499);
    // Within 2^-30 of the whole, also for large numbers.
    u64 whole = YEAR * 32 * HZ, hits = YEAR * 32 * 20000;
    u64 third = expected_share(whole, hits, 2 * hits);
    assert_in_range(third, whole / 3 - (whole >> 30),
                    whole / 3 + (whole >> 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks),
        cmocka_unit_test(shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
