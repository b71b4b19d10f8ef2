// Which of several clocks to believe, when each has measured the TSC in the
// same time. Pure arithmetic.
#pragma once

#include "lib/types.h"

#define VOTERS_MAX 4 // clocks; CPUID has a vote, too

struct vote {
    u64 tsc_hz;    // the TSC's rate by this clock; 0: it did not measure
    u32 error_ppm; // uncertainty of that
    bool outvoted; // result: it disagrees with those that are believed
};

// Rates that no CPU with a TSC has.
#define TSC_HZ_MIN 50000000ull
#define TSC_HZ_MAX 10000000000ull

// The vote of CPUID's leaves 15H (denominator and numerator of the TSC's rate
// to the crystal's, and that in Hz or 0) and 16H (the base frequency in MHz, or
// 0).
struct vote vote_of_cpuid(u32 denominator, u32 numerator, u32 crystal_hz,
                          u32 base_mhz);

enum verdict {
    VOTE_AGREED, // two clocks at least agree, or the RTC's second with one
    VOTE_ALONE,  // there is one clock, and its rate is plausible
    VOTE_OPEN,   // the clocks disagree, or the one's rate is not plausible
};

// Votes are in the order of preference; `rtc_hz` is the TSC's rate by the RTC's
// second, 0 if that was not measured. *chosen: the first believed vote.
// VOTE_OPEN changes no vote; with `rtc_hz` it means that the RTC agrees with
// none.
enum verdict calibration_vote(struct vote *votes, u32 count, u64 rtc_hz,
                              u32 *chosen);
