// Random distances: their distribution, their mean, and what they are for: the
// 95 % interval of a share covers the truth in 95 % of runs, whatever the
// period of the code that is sampled.
// link: lib/random_distance.c
#include "test.h"

#include "lib/random_distance.h"

#include <math.h>

#define ONE (1ull << RANDOM_UNIT_BITS)

// The table is that of an exponential distribution. What is drawn from it has a
// mean of 1: from each part as often, and evenly within it; the last part of
// the table, for a second draw, has the mean of such a draw behind it.
static void table(void **state UNUSED)
{
    u64 sum = 0;

    for (u32 i = 0; i < RANDOM_PARTS; i++) {
        double want = -0.998735579 * log(1 - (double)i / RANDOM_PARTS);
        assert_true(fabs((double)random_quantiles[i] / ONE - want) < 1e-5);
    }
    for (u32 i = 0; i < RANDOM_PARTS; i++)
        sum += (u64)random_quantiles[i] + random_quantiles[i + 1];
    assert_in_range(sum, 2 * RANDOM_PARTS * ONE - RANDOM_PARTS,
                    2 * RANDOM_PARTS * ONE + RANDOM_PARTS);
    u32 last = random_quantiles[RANDOM_PARTS - 1];
    assert_int_equal(random_quantiles[RANDOM_PARTS], last + 2 * ONE);
    assert_true(random_quantiles[RANDOM_PARTS] + last <= RANDOM_MOST * ONE);
}

#define DRAWS 1000000u

// Each part of the table is drawn as often; also by a chi-square of pairs.
static void parts(void **state UNUSED)
{
    static u32 pairs[RANDOM_PARTS][RANDOM_PARTS];
    u32 seed = (u32)random_u64() | 1, last = 0;
    double square = 0, want = (double)DRAWS / RANDOM_PARTS / RANDOM_PARTS;

    memset(pairs, 0, sizeof(pairs));
    for (u32 i = 0; i < DRAWS; i++) {
        u32 next = random_next(&seed) >> (32 - RANDOM_PART_BITS);
        pairs[last][next]++;
        last = next;
    }
    for (u32 i = 0; i < RANDOM_PARTS * RANDOM_PARTS; i++) {
        double off = (&pairs[0][0])[i] - want;
        square += off * off / want;
    }
    // 4095 degrees of freedom: the standard deviation is 90.
    assert_true(fabs(square - 4095) < 7 * 90);
}

static void means(void **state UNUSED)
{
    static const u64 of[] = { 60, 125000, 0x3fffffff, 0x123456789abull };

    for (u32 m = 0; m < ARRAY_SIZE(of); m++) {
        u32 seed = (u32)random_u64() | 1, longer = 0;
        double sum = 0;
        for (u32 i = 0; i < DRAWS; i++) {
            u64 d = random_distance(&seed, of[m]);
            assert_true(d <= RANDOM_MOST * of[m]);
            longer += d > of[m];
            sum += d;
        }
        double rounding = m == 0 ? 0.01 : 0;
        assert_true(fabs(sum / DRAWS / of[m] - 1) < 0.007 + rounding);
        assert_true(fabs((double)longer / DRAWS - exp(-1)) < 0.004 + rounding);
    }
}

// What is left of a distance that has lasted for some time has the mean of a
// whole one: 1, within seven standard deviations and what the table's straight
// lines change (below 0.01 up to 3 means).
static void no_memory(void **state UNUSED)
{
    static double left[5];
    static u32 count[5];
    u32 seed = (u32)random_u64() | 1;

    for (u32 i = 0; i < 4 * DRAWS; i++) {
        double d = (double)random_means(&seed) / ONE;
        for (u32 t = 0; t < ARRAY_SIZE(left) && d > t * 0.75; t++) {
            left[t] += d - t * 0.75;
            count[t]++;
        }
    }
    for (u32 t = 0; t < ARRAY_SIZE(left); t++) {
        double mean = left[t] / count[t];
        printf("# after %.2f means: %.4f\n", t * 0.75, mean);
        assert_true(fabs(mean - 1) < 0.01 + 7 / sqrt(count[t]));
    }
}

static void counts(void **state UNUSED)
{
    for (u32 mean = 1; mean < 20; mean++) {
        u32 seed = (u32)random_u64() | 1;
        u64 sum = 0;
        for (u32 i = 0; i < DRAWS; i++) {
            u64 n = random_count(&seed, mean);
            assert_true(n >= 1 && n <= RANDOM_MOST * mean);
            sum += n;
        }
        assert_true(fabs((double)sum / DRAWS / mean - 1) < 0.007);
    }
}

// A late point accounts for whole periods that have passed meanwhile.
static void rows(void **state UNUSED)
{
    u32 seed = (u32)random_u64() | 1, even = 0;
    u64 due = 1000, now = 1000, points = 0, at_once = 0;

    assert_int_equal(random_row_pass(&even, &due, 1999, 1000), 1);
    assert_int_equal(due, 2000);
    assert_int_equal(random_row_pass(&even, &due, 5500, 1000), 4);
    assert_int_equal(due, 6000);
    due = 1000;
    while (points < DRAWS) {
        now = MAX(due, now);
        now += random_below(10) ? random_below(50) : random_below(9000);
        points += random_row_pass(&seed, &due, now, 1000);
        at_once += due <= now;
    }
    assert_true(at_once > 0);
    assert_true(fabs((double)(due - 1000) / 1000 / points - 1) < 0.007);
}

// --- coverage ---------------------------------------------------------------

#define RUNS 4000u
#define SAMPLES 400u
#define MEAN 1000000u

// The coverage of the interval for a function that takes the first half of each
// round of a loop.
static double coverage(double loop, u64 (*distance)(u32 *seed))
{
    u32 seed = (u32)random_u64() | 1, covered = 0;

    for (u32 run = 0; run < RUNS; run++) {
        u32 hits = 0;
        double at = random_below(1000) / 1000.0; // in rounds
        for (u32 i = 0; i < SAMPLES; i++) {
            at += distance(&seed) / (loop * MEAN);
            hits += at - floor(at) < 0.5;
        }
        double share = (double)hits / SAMPLES;
        covered += fabs(share - 0.5) <= 1.96 * sqrt(0.25 / SAMPLES);
    }
    return (double)covered / RUNS;
}

static u64 exponential(u32 *seed)
{
    return random_distance(seed, MEAN);
}

static u64 uniform(u32 *seed)
{
    return MEAN / 2 + (u64)random_next(seed) * MEAN / (1ull << 32);
}

// 95 % within 0.025, 7 standard deviations (and the interval has 93.6 to 95.4 %
// because a share is a whole number of samples).
static void intervals_cover(void **state UNUSED)
{
    static const double loops[] = { 2.0 / 3, 0.5, 1, 1.5, 2, 0.1, 3.7 };

    for (u32 i = 0; i < ARRAY_SIZE(loops); i++) {
        double c = coverage(loops[i], exponential);
        printf("# a loop of %.3f mean distances: %.3f\n", loops[i], c);
        assert_true(fabs(c - 0.95) < 0.025);
    }
    assert_true(coverage(2.0 / 3, uniform) < 0.91);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(parts),
        cmocka_unit_test(means),
        cmocka_unit_test(counts),
        cmocka_unit_test(rows),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(intervals_cover),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
