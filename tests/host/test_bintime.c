// lib/bintime.c and the 128-bit arithmetic under it, against the host's own
// 128-bit integers: edges of every range, and random numbers of every length.
#include "test.h"

#include "lib/bintime.h"
#include "lib/math64.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

#define RANDOM_ROUNDS 200000
#define ONE ((u128)1 << 64) // a second in 2^-64 s

// A number of random length, 0 to 64 bits, so that small ones occur too.
static u64 random_length(void)
{
    u32 bits = random_below(65);
    return bits ? random_u64() >> (64 - bits) : 0;
}

static const u64 edges[] = {
    0,
    1,
    2,
    999999,
    1000000,
    999999999,
    NSEC_PER_SEC,
    NSEC_PER_SEC + 1,
    0x7fffffff, // 2038-01-19
    0x80000000,
    0xffffffff, // 2106-02-07
    0x100000000,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xfffffffffffffffe,
    0xffffffffffffffff,
};

// Rates of real counters, and the limits of the range.
static const u64 rates[] = { 2,          3,          1000,       32768,
                             1193182,    3579545,    14318180,   100000000,
                             999999999,  1000000000, 2899999998, 4294967295,
                             4294967296, 5000000001, UINT64_MAX };

#define FOR_EACH(x, array) \
    for (const u64 *x = (array); x < (array) + ARRAY_SIZE(array); x++)

static s128 value(struct bintime t)
{
    return (s128)t.sec * (s128)ONE + t.frac;
}

// floor(t * unit / 2^64)
static s128 floor_units(struct bintime t, u64 unit)
{
    return (s128)t.sec * unit + (s128)((u128)t.frac * unit >> 64);
}

static void check_multiply(u64 a, u64 b)
{
    u64 high, low = multiply_u64(a, b, &high);
    u128 product = (u128)a * b;
    assert_true(low == (u64)product && high == (u64)(product >> 64));
    for (u32 shift = 0; shift < 128; shift++) {
        if (product >> shift >> 64 == 0)
            assert_true(multiply_shift(a, b, shift) == (u64)(product >> shift));
    }
}

static void multiplication(void **state UNUSED)
{
    FOR_EACH(a, edges)
    FOR_EACH(b, edges)
    check_multiply(*a, *b);
    for (int i = 0; i < RANDOM_ROUNDS; i++)
        check_multiply(random_length(), random_length());
}

static void check_fraction(u64 n, u64 divisor)
{
    bool exact;
    u128 dividend = (u128)n << 64;
    assert_true(divide_fraction(n, divisor, &exact) ==
                (u64)(dividend / divisor));
    assert_true(exact == (dividend % divisor == 0));
}

static void division(void **state UNUSED)
{
    FOR_EACH(divisor, edges)
    {
        FOR_EACH(n, edges)
        {
            if (*n < *divisor)
                check_fraction(*n, *divisor);
        }
    }
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        u64 divisor = MAX(random_length(), 1ull);
        check_fraction(random_u64() % divisor, divisor);
    }
}

// The round trip is exact, and gives the least bintime that is not earlier.
static void check_parts(u64 sec, u64 parts, u64 per_sec)
{
    struct bintime t = bintime_from_parts((s64)sec, parts, per_sec);
    assert_true(t.sec == (s64)sec);
    assert_true(bintime_parts(t, per_sec) == parts);
    assert_true((u128)t.frac * per_sec >= (u128)parts * ONE);
    if (t.frac)
        assert_true((u128)(t.frac - 1) * per_sec < (u128)parts * ONE);
}

static void timespecs_to_the_digit(void **state UNUSED)
{
    FOR_EACH(sec, edges)
    {
        FOR_EACH(part, edges)
        {
            s64 s = (s64)*sec;
            u32 n = (u32)*part;
            if (*part < NSEC_PER_SEC) {
                check_parts(*sec, n, NSEC_PER_SEC);
                struct bintime t = bintime_from_timespec(s, n);
                assert_true(t.sec == s && bintime_nsec(t) == n);
            }
        }
    }
    for (int i = 0; i < RANDOM_ROUNDS; i++)
        check_parts(random_u64(), random_below(NSEC_PER_SEC), NSEC_PER_SEC);
    // All microseconds, and the nanoseconds beside them.
    for (u32 usec = 0; usec < 1000000; usec++) {
        check_parts(7, usec, 1000000);
        check_parts(7, usec * 1000, NSEC_PER_SEC);
        check_parts(7, usec * 1000 + 999, NSEC_PER_SEC);
    }
}

static void check_ns(s64 ns)
{
    struct bintime t = bintime_from_ns(ns);
    assert_true(bintime_to_ns(t) == ns);
    assert_true(floor_units(t, NSEC_PER_SEC) == ns);
}

static s64 clamp_ns(s128 ns)
{
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (s64)ns;
}

static void check_to_ns(struct bintime t)
{
    assert_true(bintime_to_ns(t) == clamp_ns(floor_units(t, NSEC_PER_SEC)));
}

static void nanoseconds(void **state UNUSED)
{
    FOR_EACH(edge, edges)
    {
        s64 e = (s64)*edge, near = (s64)(*edge / NSEC_PER_SEC);
        check_ns(e);
        FOR_EACH(frac, edges)
        {
            check_to_ns((struct bintime){ e, *frac });
            check_to_ns((struct bintime){ near, *frac });
            check_to_ns((struct bintime){ -near, *frac });
        }
    }
    // The seconds at both ends of the range of s64 nanoseconds.
    for (s64 sec = -9223372038; sec <= 9223372037; sec++) {
        if (sec == -9223372034)
            sec = 9223372034;
        for (int i = 0; i < 1000; i++)
            check_to_ns((struct bintime){ sec, random_u64() });
    }
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        check_ns((s64)random_length());
        check_ns(-(s64)random_length());
        check_to_ns((struct bintime){ (s64)random_length(), random_u64() });
        check_to_ns((struct bintime){ -(s64)random_length(), random_u64() });
    }
}

static void check_ticks(u64 n, u64 hz)
{
    struct bintime t = bintime_from_ticks(n, hz);
    assert_true(bintime_to_ticks(t, hz) == n);
    u128 up = ((u128)(n % hz) * ONE + hz - 1) / hz;
    assert_true(t.sec == (s64)(n / hz) && t.frac == (u64)up);
}

static void check_to_ticks(struct bintime t, u64 hz)
{
    u128 fraction = (u128)t.frac * hz >> 64;
    u128 ticks = (u128)(u64)t.sec * hz;
    bool over = (u64)t.sec && ticks / (u64)t.sec != hz;
    ticks += fraction;
    over |= ticks >> 64 != 0;
    u64 expected = t.sec < 0 ? 0 : over ? UINT64_MAX : (u64)ticks;
    assert_true(bintime_to_ticks(t, hz) == expected);
}

static void check_advance(struct bintime t, u64 n, u64 tick)
{
    struct bintime sum = bintime_advance(t, n, tick);
    u128 expected = (u128)value(t) + (u128)n * tick;
    assert_true((u128)value(sum) == expected);
}

static void ticks(void **state UNUSED)
{
    FOR_EACH(rate, rates)
    {
        u64 hz = *rate;
        assert_true(bintime_tick(hz) == (u64)(ONE / hz));
        FOR_EACH(n, edges)
        {
            struct bintime t = { (s64)*n, *n };
            check_ticks(*n, hz);
            check_to_ticks(t, hz);
            check_advance(t, *n, bintime_tick(hz));
        }
        for (int i = 0; i < RANDOM_ROUNDS / 20; i++) {
            struct bintime t = { (s64)random_length(), random_u64() };
            check_ticks(random_length(), hz);
            check_to_ticks(t, hz);
            check_to_ticks((struct bintime){ -1, random_u64() }, hz);
            check_advance(t, random_u64(), random_length());
        }
    }
}

static void check_sum(struct bintime a, struct bintime b)
{
    struct bintime sum = bintime_add(a, b), back = bintime_sub(sum, b);
    assert_true((u128)value(sum) == (u128)value(a) + (u128)value(b));
    assert_true(back.sec == a.sec && back.frac == a.frac);
    int order = value(a) < value(b) ? -1 : value(a) > value(b);
    assert_int_equal(bintime_compare(a, b), order);
}

static void sums(void **state UNUSED)
{
    FOR_EACH(a, edges)
    {
        FOR_EACH(b, edges)
        {
            struct bintime t = { (s64)*a, *b };
            check_sum(t, (struct bintime){ 0, *a });
            check_sum(t, (struct bintime){ (s64)*b, *a });
        }
    }
    for (int i = 0; i < RANDOM_ROUNDS; i++)
        check_sum((struct bintime){ (s64)random_u64(), random_u64() },
                  (struct bintime){ (s64)random_u64(), random_u64() });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiplication),
        cmocka_unit_test(division),
        cmocka_unit_test(timespecs_to_the_digit),
        cmocka_unit_test(nanoseconds),
        cmocka_unit_test(ticks),
        cmocka_unit_test(sums),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
