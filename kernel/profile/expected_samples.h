// The expected number of samples, by the ledger: the ticks that come due while
// a target has a CPU. At a fixed period this is the targets' time times the
// rate; at random periods it is the targets' share of the time times the number
// of ticks that came due, where the source counts them.
//
// A tick that comes due in a handler which it cannot interrupt is taken when
// the handler returns, and hits the code that the handler interrupted. At fixed
// periods the targets' time thus includes their share of the handlers' time.
// The ledger does not know that share; it is estimated as the fraction of all
// ticks that hit targets. At random periods such ticks are recognised and
// counted (throttle.h), and so are those that come just behind a handler: that
// time is no part of the targets' time.
#pragma once

#include "lib/types.h"

// whole * part / (part + rest), to 2^-31 of `whole`; 0 if both are 0.
static inline u64 expected_share(u64 whole, u64 part, u64 rest)
{
    u64 all = part + rest;
    while (all >> 31) {
        all >>= 1;
        part >>= 1;
    }
    return all ? whole / all * part + whole % all * part / all : 0;
}

// Ticks in `cycles` TSC cycles, rounded to nearest.
static inline u64 expected_ticks(u64 cycles, u64 tsc_hz, u32 rate_hz)
{
    return cycles / tsc_hz * rate_hz +
           (cycles % tsc_hz * rate_hz + tsc_hz / 2) / tsc_hz;
}
