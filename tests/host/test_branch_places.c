// The recorded calls of threads (kernel/profile/branch_places.h): a thread that
// enters a CPU finds those with which it left the last one, or none, however
// late a CPU stores them, and never another thread's.
#include "test.h"

#include "kernel/profile/branch_places.h"

#define THREADS 12u
#define STORES 4u // at most that are late at the same time

static struct branch_place places[BRANCH_PLACES];

// What thread n has when it leaves a CPU for the `left`-th time.
static u32 calls_of(u32 n, u32 left)
{
    return n << 24 | left;
}

// Ids of which some share a place.
static u32 id_of(u32 n)
{
    return n % 8 + 1 + n / 8 * BRANCH_PLACES;
}

static void found_or_not(void **state UNUSED)
{
    static u32 left[THREADS];
    struct {
        u32 n;
        u64 time;
        struct lbr_stack stack;
    } late[STORES];
    u32 lates = 0, found = 0;
    u64 time = 0xfffffff0; // the lower half overflows soon
    memset(left, 0, sizeof(left));
    for (u32 round = 0; round < 20000; round++) {
        struct lbr_stack stack;
        u32 n = random_below(THREADS);
        branch_place_take(places, id_of(n), time++, &stack);
        if (stack.count) {
            assert_int_equal(stack.count, 1);
            assert_int_equal(stack.from[0], calls_of(n, left[n]));
            found++;
        }
        if (lates == STORES || random_below(3) == 0) {
            for (u32 i = 0; i < lates; i++)
                branch_place_put(places, id_of(late[i].n), late[i].time,
                                 &late[i].stack);
            lates = 0;
        }
        late[lates].n = n;
        late[lates].time = time++;
        late[lates].stack.count = 1;
        late[lates++].stack.from[0] = calls_of(n, ++left[n]);
    }
    assert_true(found > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(found_or_not) };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
