// What time it is: straight lines over the counter in use, and how to change
// them without anybody's time running backwards.
//
// All clocks are read without a lock, on any CPU, in any context, NMI included:
//
//     clock_now_ns   uptime (arch/clock.h): CLOCK_MONOTONIC, adjusted in rate
//     clock_raw_ns   CLOCK_MONOTONIC_RAW: the counter by its measured rate
//     clock_wall_ns  CLOCK_REALTIME: uptime + an offset that may be set
//
// Inside, uptime and raw time are kept in 64.64 fixed point (lib/bintime.h) at
// each change of a line; the nanoseconds told between two changes are never
// ahead of that, and lag less than 2e-9 of the time since.
#pragma once

#include "arch/clock.h"
#include "kernel/time/time_page.h"
#include "lib/bintime.h"

struct timecounter;

extern struct time_page time_page;

u64 clock_raw_ns(void);
s64 clock_wall_ns(void);
// CLOCK_REALTIME - CLOCK_MONOTONIC, from which absolute deadlines are reckoned.
s64 clock_wall_offset(void);

// Nanoseconds a count of the counter in use, rounded up.
u32 clock_resolution_ns(void);

// The changes. Any context; they wait for each other, with interrupts off. In
// NMI context none.

// Goes on with `tc` (the first time: begins) without a jump.
void timehands_use(struct timecounter *tc);
// From now on uptime runs by 1 + rate / 2^TIME_RATE_SHIFT of raw time; at most
// 1/8. *uptime and *raw: the moment.
#define TIME_RATE_SHIFT 44
void timehands_set_rate(s64 rate, struct bintime *uptime, struct bintime *raw);
// It is `wall` nanoseconds since 1970 (>= 0) now.
void timehands_set_wall(s64 wall);
// Reads the counter, which must be done before it has wrapped.
void timehands_refresh(void);
