// Counts of 64 bits (<strobe/sensor_count.h>): a writer that is killed at any
// instruction, with the low word about to overflow, has added all or nothing,
// and so have those that go on after it. Each instruction is tried.
#define _GNU_SOURCE
#include "test.h"

#include "stepping.h"

#include <strobe/sensor_post.h>

static struct sensor_count count __attribute__((aligned(8)));
static u32 added;

static void add(void)
{
    sensor_count_add(&count, added);
}

// Kills the writer at each instruction; then another one goes on.
static void kill_everywhere(u64 from, u32 n)
{
    bool killed = true;
    for (u32 step = 0; killed; step++) {
        count = sensor_count_of(from);
        added = n;
        killed = step_into(add, step, NULL);
        u64 value = sensor_count_read(&count);
        assert_true(value == from + n || (killed && value == from));
        added = 1;
        add();
        assert_true(sensor_count_read(&count) == value + 1);
        add();
        assert_true(sensor_count_read(&count) == value + 2);
        assert_false(count.low & SENSOR_CARRY);
        assert_true(step < 1000);
    }
}

static void test_killed_at_each_instruction(void **state UNUSED)
{
    kill_everywhere(0, 1);
    for (u32 bits = 31; bits <= 33; bits++) {
        kill_everywhere((1ull << bits) - 1, 1);
        kill_everywhere((1ull << bits) - 5, SENSOR_STEP - 1);
        kill_everywhere((1ull << bits) - 1, SENSOR_STEP);
        kill_everywhere((1ull << bits) - 1, UINT32_MAX);
    }
}

// A second writer between any two instructions of the first one.
static void add_between(void)
{
    sensor_count_add(&count, 3);
}

static void test_interrupted_at_each_instruction(void **state UNUSED)
{
    const u32 numbers[] = { 1, SENSOR_STEP - 1, SENSOR_STEP, UINT32_MAX };
    for (u32 i = 0; i < ARRAY_SIZE(numbers); i++) {
        bool interrupted = true;
        u64 from = (1ull << 32) - 2;
        for (u32 step = 0; interrupted; step++) {
            count = sensor_count_of(from);
            added = numbers[i];
            interrupted = step_into(add, step, add_between);
            assert_true(sensor_count_read(&count) ==
                        from + added + (interrupted ? 3 : 0));
            assert_true(step < 1000);
        }
    }
}

static void test_values(void **state UNUSED)
{
    u64 sum = 0;
    count = sensor_count_of(0);
    for (u32 i = 0; i < 100000; i++) {
        u32 n = (u32)random_u64() >> random_u64() % 32;
        sensor_count_add(&count, n);
        sum += n;
        assert_true(sensor_count_read(&count) == sum);
    }
    u64 values[] = { 0, 1, 1ull << 31, 1ull << 32, (1ull << 63) - 1 };
    for (u32 i = 0; i < ARRAY_SIZE(values); i++) {
        sensor_scalar_set(&count, values[i]);
        assert_true(sensor_count_read(&count) == values[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_at_each_instruction),
        cmocka_unit_test(test_interrupted_at_each_instruction),
        cmocka_unit_test(test_values),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
