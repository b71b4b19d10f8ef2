// Merged ticks: the sum of accounted ticks is the elapsed time in periods.
#include "test.h"

#include "kernel/profile/tick_grid.h"

#define PERIOD 1000u
#define START 77777ull

static struct tick_grid grid;
static u64 reported;

static void begin(void)
{
    reported = 0;
    tick_grid_start(&grid, START);
}

static u32 at(u64 time)
{
    u64 now = START + time;
    u32 ticks = tick_grid_in_time(&grid, now, PERIOD)
                    ? 1
                    : tick_grid_passed(&grid, now, PERIOD);

    reported += ticks;
    return ticks;
}

static void in_time(void **state UNUSED)
{
    begin();
    for (u64 i = 1; i <= 1000; i++)
        assert_int_equal(at(i * PERIOD), 1);
}

static void merged(void **state UNUSED)
{
    begin();
    assert_int_equal(at(1000), 1);
    assert_int_equal(at(5300), 4); // those of 2000 to 5000
    assert_int_equal(at(6000), 1);
    assert_int_equal(at(7999), 1);
    assert_int_equal(at(8000), 1);
}

// Each is late by less than a period: none is accounted twice.
static void late(void **state UNUSED)
{
    begin();
    for (u64 i = 1; i <= 10000; i++)
        at(i * PERIOD + i * 7919 % PERIOD);
    assert_in_range(reported, 10000, 10001);
}

// The CPU is stopped while it enters the interrupt of the first tick. When it
// resumes, the interrupt of the third is pending.
static void entered_late(void **state UNUSED)
{
    begin();
    assert_int_equal(at(3400), 3);
    assert_int_equal(at(3410), 0);
    assert_int_equal(at(4000), 1);
    assert_int_equal(at(6100), 2);
    assert_int_equal(at(7000), 1);
}

// After a delay, each interrupt that accounts for a tick is followed by a
// pending one that accounts for none.
static void one_behind(void **state UNUSED)
{
    begin();
    assert_int_equal(at(3400), 3);
    for (u64 time = 4200; time < 100000; time += PERIOD) {
        assert_int_equal(at(time), 1);
        assert_int_equal(at(time + 500), 0);
    }
}

// A device slightly faster or slower than its nominal period in TSC cycles.
static void drift(void **state UNUSED)
{
    for (u32 real = PERIOD - 1; real <= PERIOD + 1; real++) {
        begin();
        for (u64 i = 1; i <= 10000; i++)
            at(i * real);
        assert_in_range(reported, 10000 - 1, 10000 + 11);
    }
}

// A storm: each interrupt accounts for up to 50 ticks, on a CPU that was once
// stopped for a long time.
static void storm(void **state UNUSED)
{
    u32 seed = 1;
    u64 tick = 0;

    begin();
    for (u32 i = 0; i < 5000; i++) {
        seed = seed * 1664525u + 1013904223u;
        tick += 1 + (seed >> 16) % 50 + (i == 99) * 10000000ull;
        at(tick * PERIOD + (seed >> 8) % PERIOD);
    }
    assert_in_range(reported, tick - 1, tick + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_time),    cmocka_unit_test(merged),
        cmocka_unit_test(late),       cmocka_unit_test(drift),
        cmocka_unit_test(storm),      cmocka_unit_test(entered_late),
        cmocka_unit_test(one_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
