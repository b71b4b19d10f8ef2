// The number of events between samples: fixed, adapted to a rate, random, and
// increased when sampling costs too much.
//
// link: kernel/profile/pace.c lib/random_distance.c
#include "test.h"

#include "kernel/profile/pace.h"
#include "lib/random_distance.h"

#define TSC_HZ 3000000000ull
#define WINDOW (TSC_HZ / 100)

static void fixed(void **state UNUSED)
{
    struct pace p;

    pace_init(&p, 12345, 0, 0, WINDOW);
    for (u32 i = 0; i < 100; i++)
        assert_int_equal(pace_next(&p, i * 1000000ull), 12345);
    pace_init(&p, 1, 0, 0, WINDOW);
    assert_int_equal(pace_next(&p, 5), 1);
}

// Samples taken in `seconds` at `rate` events per cycle.
static u64 samples_in(struct pace *p, double rate, double seconds)
{
    double now = p->last, end = now + seconds * TSC_HZ;
    u64 samples = 0;

    while (now < end) {
        now += (double)pace_next(p, (u64)now) / rate;
        samples++;
    }
    return samples;
}

static void follows_a_rate(void **state UNUSED)
{
    static const double rates[] = { 4, 1, 0.2, 0.001 };
    struct pace p;

    pace_init(&p, 100000, TSC_HZ / 1000, 0, WINDOW);
    for (u32 i = 0; i < 100; i++) {
        double rate = rates[random_below(ARRAY_SIZE(rates))];
        for (u32 k = 0; k < 40; k++) // until it has adapted
            pace_next(&p, p.last + (u64)((double)p.base / rate));
        u64 got = samples_in(&p, rate, 1);
        assert_in_range(got, 980, 1020);
    }
}

// A long halt changes the period by a limited factor; it soon adapts again.
static void survives_a_pause(void **state UNUSED)
{
    struct pace p;

    pace_init(&p, 100000, TSC_HZ / 1000, 0, WINDOW);
    samples_in(&p, 1, 1);
    u64 before = p.base;
    for (u32 i = 0; i < 3; i++)
        pace_next(&p, p.last + 3600 * TSC_HZ);
    assert_true(p.base >= before / 8);
    assert_in_range(samples_in(&p, 1, 1), 990, 1030);
}

static void at_random(void **state UNUSED)
{
    struct pace p;
    // Also of one event, and of more than 32 bits.
    const u64 bases[] = { 1000 + random_below(1000000),
                          0x123456789abcull,
                          0xc0000000,
                          0x3fffffff,
                          1,
                          2 };

    for (u32 b = 0; b < ARRAY_SIZE(bases); b++) {
        u64 base = bases[b], sum = 0;
        pace_init(&p, base, 0, (u32)random_u64() | 1, WINDOW);
        for (u32 i = 0; i < 100000; i++) {
            u64 n = pace_next(&p, i);
            assert_in_range(n, MAX(base / PACE_LEAST_PART, 1ull),
                            RANDOM_MOST * base);
            sum += n;
        }
        // 7 standard deviations are 2.2 %.
        assert_true(sum * 50 > base * 100000 * 49);
        assert_true(sum * 50 < base * 100000 * 51 + base * 100000 / 4);
    }
}

static void spend(struct pace *p, u32 cost, u64 now)
{
    static const u32 events = 1;

    p->spent += cost_meter_believed(&p->meter, cost);
    pace_spent(p, &events, now);
}

// Each sample costs 50,000 cycles: sampling is limited to about a quarter of
// the CPU. When samples become cheap, the requested period returns.
static void throttles(void **state UNUSED)
{
    struct pace p;
    u64 now = 1, spent = 0, start;

    pace_init(&p, 1000, 0, 0, WINDOW);
    for (u32 i = 0; i < 1000; i++) {
        now += pace_next(&p, now) + 50000;
        spend(&p, 50000, now);
    }
    start = now;
    for (u32 i = 0; i < 10000; i++) {
        now += pace_next(&p, now) + 50000;
        spend(&p, 50000, now);
        spent += 50000;
    }
    assert_true(p.merge > 1);
    assert_true(spent * 100 / (now - start) <= 30);
    assert_true(spent * 100 / (now - start) >= 4);
    for (u32 i = 0; i < 100000; i++) {
        now += pace_next(&p, now);
        spend(&p, 10, now);
    }
    assert_int_equal(p.merge, 1);
    assert_int_equal(p.limit, WINDOW / THROTTLE_PARTS);
    assert_int_equal(pace_next(&p, now), 1000);
}

// Merged periods are random, too, and their mean is the weight.
static void merged_at_random(void **state UNUSED)
{
    struct pace p;
    u64 now = 1, sum = 0;

    pace_init(&p, 1000, 0, (u32)random_u64() | 1, WINDOW);
    while (p.merge < 16) {
        now += pace_next(&p, now) + 50000;
        spend(&p, 50000, now);
    }
    assert_int_equal(pace_weight(&p, 1, false), 16000);
    for (u32 i = 0; i < 100000; i++)
        sum += pace_next(&p, now);
    assert_in_range(sum / 100000, 15680, 16320); // 7 standard deviations
}

// A period that is much too short leaves the program most of the time before a
// quarter of a usual window is over.
static void found_at_once(void **state UNUSED)
{
    struct pace p;
    u64 now = 1;

    pace_init(&p, 1, 0, 0, WINDOW);
    while (p.mean < 1024 && now < 100ull * WINDOW) {
        now += pace_next(&p, now) + 500;
        spend(&p, 500, now);
    }
    assert_true(now < WINDOW / 4);
}

// The cost of an NMI is charged to the events that it sampled.
static void charged(void **state UNUSED)
{
    struct pace p[3];
    struct pace_nmis n = { .sum = (u32)random_u64() };
    u32 start = n.sum;

    for (u32 i = 0; i < 3; i++)
        pace_init(&p[i], 1000, 0, 0, WINDOW);
    pace_charge(&n, &p[1], 1 << 1, start + 10); // 10 belong to no event's NMI
    pace_charge(&n, &p[0], 1 << 0, start + 310);
    pace_charge(&n, &p[2], 1 << 2, start + 310);
    pace_charge(&n, &p[2], 1 << 2, start + 1110);
    pace_charge(&n, &p[1], 1 << 1, start + 1160);
    assert_int_equal(p[0].spent, 400);
    assert_int_equal(p[1].spent, 300);
    assert_int_equal(p[2].spent, 400 + 50);
}

// A sample's weight is the mean distance: not the one that was drawn, and only
// for a user's event what has passed beyond it.
static void weights(void **state UNUSED)
{
    struct pace p;

    pace_init(&p, 1000, 0, 99, WINDOW);
    p.merge = 4;
    p.mean = 4000;
    for (u32 i = 0; i < 1000; i++) {
        u64 drawn = pace_next(&p, i);
        assert_int_equal(pace_weight(&p, 1, false), 4000);
        assert_int_equal(pace_weight(&p, 1, true), 4000);
        assert_int_equal(pace_weight(&p, 3, false), 4000 + 2 * drawn);
        assert_int_equal(pace_weight(&p, 3, true), 4000);
    }
}

// Time that the host takes during a sample is not counted as its cost.
static void stolen_time(void **state UNUSED)
{
    struct pace p;
    u64 now = 1;

    pace_init(&p, 1000, 0, 0, WINDOW);
    for (u32 i = 0; i < 10000; i++) {
        now += 1000000;
        u32 cost = 1000;
        if (i % 100 == 0) {
            now += 2 * WINDOW;
            cost += 2 * WINDOW;
        }
        spend(&p, cost, now);
        assert_int_equal(pace_next(&p, now), 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed),
        cmocka_unit_test(follows_a_rate),
        cmocka_unit_test(survives_a_pause),
        cmocka_unit_test(at_random),
        cmocka_unit_test(throttles),
        cmocka_unit_test(merged_at_random),
        cmocka_unit_test(found_at_once),
        cmocka_unit_test(charged),
        cmocka_unit_test(weights),
        cmocka_unit_test(stolen_time),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
