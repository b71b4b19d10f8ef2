// Accounting of a timer's shots: the interrupts' sum is the timer's count, also
// if interrupts come before the count, merged, or twice.
#include "test.h"

#include "kernel/profile/shot_count.h"

#define START 0xfffffe00u // counts wrap

static struct shot_count count;
static u32 shots, counted;

static void begin(void)
{
    shots = START;
    counted = START;
    count.accounted = shots;
}

static u32 interrupt(void)
{
    u32 passed = shot_count_passed(&count, shots);
    counted += passed;
    return passed;
}

static void counted_first(void **state UNUSED)
{
    begin();
    for (u32 i = 1; i <= 1000; i++) {
        shots++;
        assert_int_equal(interrupt(), 1);
    }
    assert_int_equal(counted, shots);
}

// Each interrupt comes before its shot is counted.
static void counted_later(void **state UNUSED)
{
    begin();
    for (u32 i = 1; i <= 1000; i++) {
        assert_int_equal(interrupt(), 1);
        shots++;
    }
    assert_int_equal(counted, shots);
}

static void merged(void **state UNUSED)
{
    begin();
    shots += 4;
    assert_int_equal(interrupt(), 4);
    shots++;
    assert_int_equal(interrupt(), 1);
    assert_int_equal(counted, shots);
}

// An interrupt whose shot the previous one has accounted for is taken for the
// next shot, before its count: at most once.
static void for_nothing(void **state UNUSED)
{
    begin();
    shots += 2;
    assert_int_equal(interrupt(), 2);
    assert_int_equal(interrupt(), 1);
    assert_int_equal(interrupt(), 0);
    shots++;
    assert_int_equal(counted, shots);
}

// Random interrupts, early, late, merged and superfluous: the sum is ahead of
// the count by one at most.
static void any(void **state UNUSED)
{
    begin();
    for (u32 i = 0; i < 100000; i++) {
        bool first = random_below(2);
        if (first && random_below(4))
            interrupt();
        shots += 1 + (random_below(10) ? 0 : random_below(5));
        if (!first && random_below(4))
            interrupt();
        if (!random_below(10))
            interrupt();
        if (counted != shots && counted != shots + 1)
            interrupt();
        assert_true(counted - shots <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted_first), cmocka_unit_test(counted_later),
        cmocka_unit_test(merged),        cmocka_unit_test(for_nothing),
        cmocka_unit_test(any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
