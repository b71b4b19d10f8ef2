// Accounting of a timer's shots: the interrupts' sum is the timer's count, also
// if interrupts come before the count, merged, or twice.
#include "test.h"

#include "kernel/profile/shot_count.h"

#define CLOSEST 375u
#define START 0xfffffe00u // both counts and times wrap

static struct shot_count count;
static u32 shots, counted;

static void begin(void)
{
    shots = START;
    counted = START;
    shot_count_start(&count, shots, START);
}

static u32 at(u32 time)
{
    u32 passed = shot_count_passed(&count, shots, START + time, CLOSEST);
    counted += passed;
    return passed;
}

static void counted_first(void **state UNUSED)
{
    begin();
    for (u32 i = 1; i <= 1000; i++) {
        shots++;
        assert_int_equal(at(i * 500), 1);
    }
    assert_int_equal(counted, shots);
}

// Each interrupt comes before its shot is counted.
static void counted_later(void **state UNUSED)
{
    begin();
    for (u32 i = 1; i <= 1000; i++) {
        assert_int_equal(at(i * 500), 1);
        shots++;
    }
    assert_int_equal(counted, shots);
}

static void merged(void **state UNUSED)
{
    begin();
    shots += 4;
    assert_int_equal(at(5000), 4);
    shots++;
    assert_int_equal(at(5500), 1);
    assert_int_equal(counted, shots);
}

// A delayed interrupt, whose shot the previous interrupt has accounted for.
static void for_nothing(void **state UNUSED)
{
    begin();
    shots += 2;
    assert_int_equal(at(1500), 2);
    assert_int_equal(at(1510), 0);
    assert_int_equal(counted, shots);
    assert_int_equal(at(2000), 1); // the next shot, before its count,
    assert_int_equal(at(2600), 0); // at most once
    shots++;
    assert_int_equal(counted, shots);
}

// Random interrupts, early, late, merged and superfluous: the sum is ahead of
// the count by one at most.
static void any(void **state UNUSED)
{
    begin();
    u32 time = 0;
    for (u32 i = 0; i < 100000; i++) {
        time += CLOSEST + random_below(1000);
        bool first = random_below(2);
        if (first && random_below(4))
            at(time);
        shots += 1 + (random_below(10) ? 0 : random_below(5));
        if (!first && random_below(4))
            at(time);
        if (!random_below(10))
            at(time + random_below(100));
        if (counted != shots && counted != shots + 1)
            at(time + 200);
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
