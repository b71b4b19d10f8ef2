// Timekeeping: the clocks as straight lines over the counter in use, and
// changes of these lines without time running backwards anywhere.
//
// All clocks are read without a lock, on any CPU, in any context, NMI included:
//
//     clock_now_ns   uptime (arch/clock.h): CLOCK_MONOTONIC, adjusted in rate
//     clock_raw_ns   CLOCK_MONOTONIC_RAW: the counter by its measured rate
//     clock_wall_ns  CLOCK_REALTIME: uptime + an offset that may be set
//
// Internally, uptime and raw time are kept in 64.64 fixed point (lib/bintime.h)
// at each change of a line. The nanoseconds reported between two changes are
// never ahead of that, and lag less than 2e-9 of the time since.
#pragma once

#include "arch/clock.h"
#include "kernel/time/time_page.h"
#include "lib/bintime.h"

struct timecounter;

extern struct time_page time_page;

u64 clock_raw_ns(void);
s64 clock_wall_ns(void);
// CLOCK_REALTIME - CLOCK_MONOTONIC, from which absolute deadlines are computed.
s64 clock_wall_offset(void);

// Nanoseconds per count of the counter in use, rounded up.
u32 clock_resolution_ns(void);

// Changes. Any context but NMI; they wait for each other, with interrupts off.

// Switches to `tc` without a jump; the first call starts the clocks.
void timehands_use(struct timecounter *tc);
// Sets the rate: uptime runs at 1 + rate / 2^TIME_RATE_SHIFT of raw time, where
// |rate| / 2^TIME_RATE_SHIFT < 1/8. *uptime and *raw: the moment of the change.
#define TIME_RATE_SHIFT 44
void timehands_set_rate(s64 rate, struct bintime *uptime, struct bintime *raw);
// Sets the wall clock to `wall` nanoseconds since 1970 (>= 0).
void timehands_set_wall(s64 wall);
// Begins new lines at the current count. Must be called before the counter has
// wrapped.
void timehands_refresh(void);
