// The interval timer's registers, on models of its chips: an 8254, an 8253
// without the read-back command, v86's, which ignores it too and returns halves
// of a moving count, an absent one, and one whose counts are noise.
// link: tests/host/pit_model.c
#include "pit_model.h"
#include "test.h"

#define in8 port_in8
#define out8 port_out8
#include "arch/i386/dev/port.h"
#undef in8
#undef out8
#define in8 pit_model_read
#define out8 pit_model_write
#include "arch/i386/clock/pit_chip.c"

#define PERIOD 65472u

static const char *find(enum pit_kind kind)
{
    pit_model_init(kind);
    pit_identify(2);
    pit_load(2, PIT_RATE, PERIOD);
    pit_wait_loaded(2);
    return pit_why_no_count(2, PERIOD);
}

static void chips_are_recognised(void **state UNUSED)
{
    assert_null(find(PIT_8254));
    assert_true(pit_has_read_back());
    assert_null(find(PIT_8253));
    assert_false(pit_has_read_back());
    assert_null(find(PIT_V86));
    assert_false(pit_has_read_back());
}

static void bad_chips_are_refused(void **state UNUSED)
{
    assert_string_equal(find(PIT_ABSENT), "it does not count");
    assert_false(pit_has_read_back());
    assert_string_equal(find(PIT_NOISE), "its counts are noise");
}

// Each reading is the count at its latch, however long the two halves take.
static void counts_are_exact(void **state UNUSED)
{
    static const enum pit_kind kinds[] = { PIT_8254, PIT_8253, PIT_V86 };

    for (u32 k = 0; k < ARRAY_SIZE(kinds); k++) {
        assert_null(find(kinds[k]));
        u32 last = pit_read(2);
        u64 before = pit_model_latched_at();
        for (u32 i = 0; i < 20000; i++) {
            pit_model_pass(random_below(3000));
            u32 now = pit_read(2);
            u64 at = pit_model_latched_at();
            u32 passed = (last + PERIOD - now) % PERIOD;
            assert_int_equal(passed, (at - before) % PERIOD);
            last = now;
            before = at;
        }
    }
}

// The end of a shot is recognised, and not before it. (Without the read-back
// command for 65536 - count ticks.)
static void shots_end(void **state UNUSED)
{
    static const enum pit_kind kinds[] = { PIT_8254, PIT_8253, PIT_V86 };

    for (u32 k = 0; k < ARRAY_SIZE(kinds); k++) {
        assert_null(find(kinds[k]));
        for (u32 i = 0; i < 2000; i++) {
            u32 count = 12 + random_below(32768 - 12);
            pit_load(0, PIT_ONE_SHOT, count);
            u64 end = pit_model_time() + count;
            pit_wait_loaded(0);
            while (pit_model_time() + 8 < end) {
                assert_false(pit_ended(0, count));
                pit_model_pass(random_below(5000));
            }
            pit_model_pass(16 + random_below(27000));
            assert_true(pit_ended(0, count));
            pit_load_again(0, count);
            pit_model_pass(count - 8);
            assert_false(pit_ended(0, count));
            pit_model_pass(8);
            assert_true(pit_ended(0, count));
        }
    }
}

static void counters_stop(void **state UNUSED)
{
    assert_null(find(PIT_8254));
    pit_halt(2);
    assert_string_equal(pit_why_no_count(2, PERIOD), "it does not count");
}

int main(void)
{
    random_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chips_are_recognised),
        cmocka_unit_test(bad_chips_are_refused),
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(shots_end),
        cmocka_unit_test(counters_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
