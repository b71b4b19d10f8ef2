#include "lib/bintime.h"

#include "lib/assert.h"
#include "lib/math64.h"

// A 32-bit divisor takes two machine divisions. A longer one is divided bit by
// bit, which only a frequency above 4.3 GHz needs.
u64 divide_fraction(u64 n, u64 divisor, bool *exact)
{
    assert_checked(n < divisor);
    u64 quotient = 0;
    if (!(divisor >> 32)) {
        u32 rest;
        u64 high = divide_u64(n << 32, (u32)divisor, &rest);
        quotient = divide_u64((u64)rest << 32, (u32)divisor, &rest);
        *exact = !rest;
        return high << 32 | quotient;
    }
    for (int bit = 0; bit < 64; bit++) {
        bool carry = n >> 63;
        n <<= 1;
        quotient <<= 1;
        if (carry || n >= divisor) {
            n -= divisor;
            quotient |= 1;
        }
    }
    *exact = !n;
    return quotient;
}

struct bintime bintime_from_parts(s64 sec, u64 parts, u64 per_sec)
{
    bool exact;
    u64 frac = divide_fraction(parts, per_sec, &exact);
    // No overflow: parts / per_sec is at most 1 - 1 / per_sec, rounded up at
    // most 1 - 2^-64.
    return (struct bintime){ sec, frac + !exact };
}

u64 bintime_parts(struct bintime t, u64 per_sec)
{
    return multiply_shift(t.frac, per_sec, 64);
}

struct bintime bintime_from_ns(s64 ns)
{
    s64 sec = ns / (s64)NSEC_PER_SEC;
    s64 nsec = ns % (s64)NSEC_PER_SEC;
    if (nsec < 0) {
        sec--;
        nsec += (s64)NSEC_PER_SEC;
    }
    return bintime_from_timespec(sec, (u32)nsec);
}

s64 bintime_to_ns(struct bintime t)
{
    const s64 limit = INT64_MAX / (s64)NSEC_PER_SEC;
    u32 nsec = bintime_nsec(t);
    s64 ns;
    if (t.sec > limit)
        return INT64_MAX;
    if (t.sec < -limit - 1)
        return INT64_MIN;
    if (t.sec < 0) { // from sec + 1, so that nothing overflows early
        ns = (t.sec + 1) * (s64)NSEC_PER_SEC;
        s64 below = (s64)nsec - (s64)NSEC_PER_SEC;
        return __builtin_add_overflow(ns, below, &ns) ? INT64_MIN : ns;
    }
    ns = t.sec * (s64)NSEC_PER_SEC;
    return __builtin_add_overflow(ns, (s64)nsec, &ns) ? INT64_MAX : ns;
}

struct bintime bintime_from_ticks(u64 ticks, u64 hz)
{
    assert_checked(hz);
    return bintime_from_parts((s64)(ticks / hz), ticks % hz, hz);
}

u64 bintime_to_ticks(struct bintime t, u64 hz)
{
    if (t.sec < 0)
        return 0;
    u64 high, whole = multiply_u64((u64)t.sec, hz, &high), ticks;
    if (high || __builtin_add_overflow(whole, bintime_parts(t, hz), &ticks))
        return UINT64_MAX;
    return ticks;
}

u64 bintime_tick(u64 hz)
{
    assert(hz >= 2);
    bool exact;
    return divide_fraction(1, hz, &exact);
}

struct bintime bintime_advance(struct bintime t, u64 ticks, u64 tick)
{
    u64 sec, frac = multiply_u64(ticks, tick, &sec);
    return bintime_add(t, (struct bintime){ (s64)sec, frac });
}
