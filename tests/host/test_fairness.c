// kernel/sched/interactivity.h and fair.c: the arithmetic of scheduling.
// link: kernel/sched/fair.c
#include "test.h"

#include "kernel/sched/fair.h"
#include "kernel/sched/interactivity.h"

static u32 score(u32 run, u32 slept)
{
    struct interactivity h = { run, slept };
    return interactivity_score(&h);
}

// --- the score --------------------------------------------------------------

// Points of FreeBSD's score (figure 2.4 of the thesis).
static void known_scores(void **state UNUSED)
{
    enum { S = 1 << 20 };
    assert_int_equal(score(0, 0), 0);
    assert_int_equal(score(0, S), 0);
    assert_int_equal(score(S, 10 * S), 5);
    assert_int_equal(score(S, 2 * S), 25);
    assert_int_equal(score(3 * S, 5 * S), 30);
    assert_int_equal(score(S, S), 50);
    assert_int_equal(score(2 * S, S), 75);
    assert_int_equal(score(10 * S, S), 95);
    assert_int_equal(score(S, 0), 100);
}

// The score never falls with run time and never rises with sleep, and has no
// step where the two are equal.
static void monotonic_and_continuous(void **state UNUSED)
{
    for (u32 i = 0; i < 300000; i++) {
        u32 run = random_below(INTERACTIVITY_LIMIT_MAX / 2);
        u32 slept = random_below(INTERACTIVITY_LIMIT_MAX / 2);
        u32 more = random_below(INTERACTIVITY_LIMIT_MAX / 2);
        u32 here = score(run, slept);
        assert_true(here <= INTERACTIVITY_MAX);
        assert_true(score(run + more, slept) >= here);
        assert_true(score(run, slept + more) <= here);
    }
    u32 half = INTERACTIVITY_LIMIT_MAX / 2;
    for (u32 step = 0; step < half / 100; step += 16) {
        assert_in_range(score(half - step, half), 49, 50);
        assert_in_range(score(half, half - step), 50, 51);
    }
}

static void history_is_bounded_and_forgotten(void **state UNUSED)
{
    enum { LIMIT = 4000000 };
    struct interactivity h = { 0, 0 };
    for (u32 i = 0; i < 100000; i++) {
        u32 before = interactivity_score(&h), time = (u32)random_u64();
        if (i & 1)
            interactivity_ran(&h, time, LIMIT);
        else
            interactivity_slept(&h, time, LIMIT);
        assert_true(h.run + h.slept <= LIMIT);
        u32 after = interactivity_score(&h);
        assert_true(i & 1 ? after + 1 >= before : after <= before + 1);
    }
    // A thread that only ran has a low score after sleeping for twice the
    // limit.
    h = (struct interactivity){ LIMIT, 0 };
    for (u32 i = 0; i < 100; i++)
        interactivity_slept(&h, LIMIT / 50, LIMIT);
    assert_true(interactivity_score(&h) < 30);
}

// A child inherits the proportion of its creator's history, with little weight.
static void decay_keeps_the_proportion(void **state UNUSED)
{
    for (u32 i = 0; i < 10000; i++) {
        struct interactivity h = { random_below(1u << 29),
                                   random_below(1u << 29) };
        u32 before = interactivity_score(&h);
        interactivity_decay(&h, 100000);
        assert_true(h.run + h.slept <= 100000);
        assert_in_range(interactivity_score(&h) + 1, before, before + 2);
    }
}

// --- shares -----------------------------------------------------------------

static void a_step_of_nice_is_a_factor_of_1_25(void **state UNUSED)
{
    assert_int_equal(fair_weight(0), FAIR_WEIGHT_0);
    double exact = FAIR_WEIGHT_0;
    for (int nice = 0; nice <= 19; nice++, exact /= 1.25)
        assert_int_equal(fair_weight(nice), (u32)(exact + 0.5));
    exact = FAIR_WEIGHT_0;
    for (int nice = 0; nice >= -20; nice--, exact *= 1.25)
        assert_int_equal(fair_weight(nice), (u32)(exact + 0.5));
}

static void virtual_time_scales_without_overflow(void **state UNUSED)
{
    for (int nice = -20; nice <= 19; nice++) {
        u64 before = 0;
        for (u64 time = 1; time < 1ull << 53; time *= 2) {
            u64 scaled = fair_virtual(time, nice);
            long double exact =
                (long double)time * FAIR_WEIGHT_0 / fair_weight(nice);
            assert_true(scaled <= exact && scaled + 1 > exact);
            assert_true(scaled >= before);
            before = scaled;
        }
        assert_true(fair_virtual(1ull << 62, nice) >= before);
    }
    assert_int_equal(fair_virtual(-(u64)5, 3), 0);
}

// Threads of random weights and slices of random length; the one with the least
// virtual time runs. Each gets its due share, within a slice.
static void shares_follow_the_weights(void **state UNUSED)
{
    enum { THREADS = 12, SLICE = 4000000, ROUNDS = 200000 };
    u64 virtual[THREADS] = { 0 }, had[THREADS] = { 0 }, sum = 0;
    double weights = 0;
    int nice[THREADS];
    for (int i = 0; i < THREADS; i++) {
        nice[i] = (int)random_below(20) - 5;
        weights += fair_weight(nice[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        int least = 0;
        for (int i = 1; i < THREADS; i++)
            least = virtual[i] < virtual[least] ? i : least;
        u64 time = random_below(SLICE);
        virtual[least] += fair_virtual(time, nice[least]);
        had[least] += time;
        sum += time;
    }
    for (int i = 0; i < THREADS; i++) {
        double due = (double)sum * fair_weight(nice[i]) / weights;
        assert_true((double)had[i] > due * 0.999 - SLICE);
        assert_true((double)had[i] < due * 1.001 + SLICE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_scores),
        cmocka_unit_test(monotonic_and_continuous),
        cmocka_unit_test(history_is_bounded_and_forgotten),
        cmocka_unit_test(decay_keeps_the_proportion),
        cmocka_unit_test(a_step_of_nice_is_a_factor_of_1_25),
        cmocka_unit_test(virtual_time_scales_without_overflow),
        cmocka_unit_test(shares_follow_the_weights),
    };
    random_init();
    return cmocka_run_group_tests_name("fairness", tests, NULL, NULL);
}
