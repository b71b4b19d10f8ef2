// NMIs that one CPU sends to another, which takes them late, and merges them:
// each is known as the sender's, and each tick is accounted for once.
#include "test.h"

#include "kernel/profile/sent_nmis.h"

// Both CPUs go on at random. The sender counts, then sends; the other CPU has
// one NMI pending at most, and reads the count some time after it has begun to
// take it, when another one can be pending.
static void none_is_unknown(void **state UNUSED)
{
    for (u32 round = 0; round < 1000; round++) {
        u32 sent = (u32)random_u64(), first = sent, sum = 0, ticks;
        struct sent_nmis n = { .seen = sent };
        bool counted = false, pending = false, taking = false;
        u32 share = 1 + random_below(9);
        for (u32 step = 0; step < 1000; step++) {
            if (random_below(10) < share) {
                sent += !counted;
                pending |= counted;
                counted = !counted;
            } else if (taking) {
                assert_true(sent_nmis_take(&n, sent, &ticks));
                sum += ticks;
                taking = false;
            } else if (pending) {
                pending = false;
                taking = true;
            }
        }
        for (u32 i = counted + pending + taking; i; i--) {
            assert_true(sent_nmis_take(&n, sent, &ticks));
            sum += ticks;
        }
        assert_int_equal(sum, sent - first);
    }
}

// Others are refused, but for those that are taken for the sender's.
static void a_strange_one_is_refused(void **state UNUSED)
{
    struct sent_nmis n = { .seen = 7 };
    u32 ticks;

    assert_false(sent_nmis_take(&n, 7, &ticks));
    assert_true(sent_nmis_take(&n, 8, &ticks) && ticks == 1);
    assert_false(sent_nmis_take(&n, 8, &ticks));
    assert_true(sent_nmis_take(&n, 1000, &ticks) && ticks == 992);
    for (u32 i = 0; i < NMIS_AHEAD_MAX; i++)
        assert_true(sent_nmis_take(&n, 1000, &ticks) && !ticks);
    assert_false(sent_nmis_take(&n, 1000, &ticks));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_unknown),
        cmocka_unit_test(a_strange_one_is_refused),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
