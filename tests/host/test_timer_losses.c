// When a timer is said to have failed (kernel/time/timer_losses.h).
#include "test.h"

#include "kernel/time/timer_losses.h"

#define MANY 10u

static void a_timer_that_stopped(void **state UNUSED)
{
    struct timer_losses l = { 0 };
    for (u32 i = 0; i < MANY; i++)
        timer_losses_add(&l, 7, i, true); // each one sent was taken
    assert_int_equal(l.count, MANY);
}

// The timer's interrupts come, late: both are taken when the host runs the CPU.
static void a_cpu_that_runs_seldom(void **state UNUSED)
{
    struct timer_losses l = { 0 };
    for (u32 i = 0; i < MANY; i++) {
        timer_losses_add(&l, 7 + i, i, true);
        assert_int_equal(l.count, 1);
    }
}

static void a_cpu_that_does_not_run(void **state UNUSED)
{
    struct timer_losses l = { 0 };
    for (u32 i = 0; i < MANY; i++)
        timer_losses_add(&l, 7, 3, true);
    assert_int_equal(l.count, 1);
}

// A CPU that finds it out itself, or a timer of all CPUs: nothing was sent.
static void nothing_is_sent(void **state UNUSED)
{
    struct timer_losses l = { 0 };
    timer_losses_add(&l, 7, 0, false);
    timer_losses_add(&l, 7, 0, false);
    assert_int_equal(l.count, 2);
    timer_losses_add(&l, 8, 0, false);
    assert_int_equal(l.count, 1);
}

static void one_that_came_ends_the_row(void **state UNUSED)
{
    struct timer_losses l = { 0 };
    timer_losses_add(&l, 7, 0, true);
    timer_losses_add(&l, 7, 1, true);
    assert_int_equal(l.count, 2);
    timer_losses_add(&l, 8, 2, true);
    assert_int_equal(l.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_that_stopped),
        cmocka_unit_test(a_cpu_that_runs_seldom),
        cmocka_unit_test(a_cpu_that_does_not_run),
        cmocka_unit_test(nothing_is_sent),
        cmocka_unit_test(one_that_came_ends_the_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
