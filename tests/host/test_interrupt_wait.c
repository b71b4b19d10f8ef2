// The wait for a timer's interrupt, on a model of QEMU that is stopped for a
// part of each period: what its device thread has to sleep does not pass then.
#include "test.h"

#include "arch/i386/clock/interrupt_wait.h"

#define MS 1000000ull
#define READ_NS 900u // of the interrupt controller
#define NEVER (~0ull)

static u64 ran; // ns, without the stops

// Of the time that the machine runs it is stopped after each `run`; 0: never.
static u64 step(u64 run, u64 stop)
{
    u64 before = ran;
    ran += WAIT_STEP_NS + READ_NS;
    return WAIT_STEP_NS + (run && before / run != ran / run ? stop : 0);
}

// The interrupt is requested when the machine has run for that long.
static bool is_requested(u64 arrives, u64 run, u64 stop)
{
    struct interrupt_wait w = { 0 };
    ran = 0;
    while (ran < arrives) {
        if (!interrupt_wait_more(&w, step(run, stop)))
            return false;
    }
    return true;
}

static void undisturbed(void **state UNUSED)
{
    assert_true(is_requested(20000, 0, 0));
    assert_true(is_requested(90 * MS, 0, 0));
}

static void a_silent_timer(void **state UNUSED)
{
    assert_false(is_requested(NEVER, 0, 0));
    assert_in_range(ran, 100 * MS, 120 * MS);
}

// The device thread may take longer than its sleep: it needs a CPU of the host,
// and the lock, between two stops.
static void a_host_that_stops_the_machine(void **state UNUSED)
{
    for (u64 ms = 5; ms <= 900; ms += 5) {
        assert_true(is_requested(ms * MS, 1500000, 60 * MS));
        assert_true(is_requested(ms * MS, 1500000, 40 * MS));
        assert_true(is_requested(ms * MS, 90 * MS, 2 * MS));
    }
}

static void a_silent_timer_on_such_a_host(void **state UNUSED)
{
    assert_false(is_requested(NEVER, 1500000, 60 * MS));
    assert_in_range(ran, 1000 * MS, 1200 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undisturbed),
        cmocka_unit_test(a_silent_timer),
        cmocka_unit_test(a_host_that_stops_the_machine),
        cmocka_unit_test(a_silent_timer_on_such_a_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
