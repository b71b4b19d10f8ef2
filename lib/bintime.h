// Time in 64.64 fixed point: seconds and a binary fraction of a second.
//
// Sums and multiples are exact. It holds any 64-bit number of seconds,
// including times before 0 (then `sec` is negative and `frac` still counts
// forward, as in a timespec).
//
// Rounding: a decimal fraction is usually no binary one. Conversion to bintime
// rounds up (to the next 2^-64 s), conversion from it rounds down. So
// converting to bintime and back gives the original value, for each unit below,
// and a converted time is never ahead of the real one.
#pragma once

#include "lib/types.h"

struct bintime {
    s64 sec;
    u64 frac; // 2^-64 s
};

static inline struct bintime bintime_add(struct bintime a, struct bintime b)
{
    u64 frac = a.frac + b.frac;
    return (struct bintime){ (s64)((u64)a.sec + (u64)b.sec + (frac < a.frac)),
                             frac };
}

static inline struct bintime bintime_sub(struct bintime a, struct bintime b)
{
    return (struct bintime){ (s64)((u64)a.sec - (u64)b.sec - (a.frac < b.frac)),
                             a.frac - b.frac };
}

// < 0, 0, > 0: a is before, at, after b.
static inline int bintime_compare(struct bintime a, struct bintime b)
{
    if (a.sec != b.sec)
        return a.sec < b.sec ? -1 : 1;
    return a.frac == b.frac ? 0 : a.frac < b.frac ? -1 : 1;
}

// `sec` and `parts` / `per_sec` seconds; parts < per_sec.
struct bintime bintime_from_parts(s64 sec, u64 parts, u64 per_sec);
// The fraction of a second, in parts of a second.
u64 bintime_parts(struct bintime t, u64 per_sec);

// timespec: `sec` is t.sec.
static inline struct bintime bintime_from_timespec(s64 sec, u32 nsec)
{
    return bintime_from_parts(sec, nsec, NSEC_PER_SEC);
}
static inline u32 bintime_nsec(struct bintime t)
{
    return (u32)bintime_parts(t, NSEC_PER_SEC);
}

// Nanoseconds, of either sign; values that do not fit give INT64_MIN or
// INT64_MAX.
struct bintime bintime_from_ns(s64 ns);
s64 bintime_to_ns(struct bintime t);

// Ticks at `hz` a second (not 0). A time before 0 is 0 ticks, one that does not
// fit is UINT64_MAX.
struct bintime bintime_from_ticks(u64 ticks, u64 hz);
u64 bintime_to_ticks(struct bintime t, u64 hz);

// The length of a tick in 2^-64 s, rounded down; hz >= 2.
u64 bintime_tick(u64 hz);
// t + ticks * tick, exactly.
struct bintime bintime_advance(struct bintime t, u64 ticks, u64 tick);
