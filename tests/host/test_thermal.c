// Which states of the thermal sensor are throttling, and which are logged
// (arch/i386/cpu/heat.h).
#include "test.h"

#include "arch/i386/cpu/heat.h"

static void states(void **state UNUSED)
{
    assert_true(heat_counts(0x88310803)); // hot
    assert_true(heat_counts(0x88310802)); // it was, and is cool again
    assert_true(heat_counts(0x88310801));
    assert_false(heat_counts(0x88310c00)); // a limit of power
    assert_false(heat_counts(0));
}

// What a CPU does with a write: sticky bits are cleared by a 0.
static u64 written(u64 status, u64 value)
{
    return status & (value | ~0xaaaull);
}

static void one_bit_is_cleared(void **state UNUSED)
{
    for (u32 i = 0; i < 4096; i++) {
        u64 status = 0x88310000 | i, value = heat_cleared(status);
        assert_true(written(status, value) == (status & ~2ull));
        assert_true(!(value & ~status)); // no bit that the CPU may lack
    }
}

static void once_a_minute(void **state UNUSED)
{
    const u64 minute = 60ull * 1000000000;
    u64 next = 0;
    u32 logged = 0;
    assert_true(heat_is_logged(&next, 5));
    assert_false(heat_is_logged(&next, 5));
    assert_false(heat_is_logged(&next, minute + 4));
    assert_true(heat_is_logged(&next, minute + 5));
    for (u64 now = 0; now < 10 * minute; now += minute / 100)
        logged += heat_is_logged(&next, 100 * minute + now);
    assert_int_equal(logged, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states),
        cmocka_unit_test(one_bit_is_cleared),
        cmocka_unit_test(once_a_minute),
    };
    return cmocka_run_group_tests_name("thermal", tests, NULL, NULL);
}
