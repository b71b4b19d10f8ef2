// Which of several clocks to believe, when each has measured the TSC in the
// same time. Pure arithmetic.
#pragma once

#include "lib/types.h"

#define VOTERS_MAX 4 // clocks; stated rates have votes, too

struct vote {
    u64 tsc_hz;    // the TSC's rate by this clock; 0: it did not measure
    u32 error_ppm; // uncertainty of that
    bool outvoted; // result: it disagrees with those that are believed
};

// Rates that no CPU with a TSC has.
#define TSC_HZ_MIN 50000000ull
#define TSC_HZ_MAX 10000000000ull

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
