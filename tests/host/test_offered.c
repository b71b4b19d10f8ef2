// Interrupts are counted while another CPU adds the counters up: at whichever
// instruction of the reader they come, each is counted once.
#define _GNU_SOURCE
#include "test.h"

#include "kernel/profile/offered.h"
#include "stepping.h"

#define COUNTERS 5
#define READINGS 40

static struct counter counters[COUNTERS];
static u64 counted, seen, newly;

// An interrupt in each of the ways.
static void interrupts(void)
{
    for (u32 i = 0; i < COUNTERS; i++)
        counter_add(&counters[i], 1);
    counted += COUNTERS;
}

static void reader(void)
{
    newly = offered_newly(&seen, counters, COUNTERS);
}

// The low halves are about to overflow.
static void begin(void)
{
    memset(counters, 0, sizeof(counters));
    counted = seen = 0;
    for (u32 i = 0; i < COUNTERS; i++) {
        u32 already = UINT32_MAX - random_below(READINGS * 2);
        counter_add(&counters[i], already);
        counted += already;
    }
    reader();
}

static void at_any_instruction(void **state UNUSED)
{
    u64 sum = 0;
    u32 n = 0;

    begin();
    u64 start = seen;
    for (bool happened = true; happened; n++) {
        u64 before = counted;
        happened = step_into(reader, n, interrupts);
        assert_in_range(seen, before, counted);
        assert_true(newly <= 2 * COUNTERS);
        sum += newly;
    }
    reader();
    assert_int_equal(sum + newly, counted - start);
    assert_true(n > COUNTERS * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(at_any_instruction) };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
