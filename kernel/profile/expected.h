// How many samples there should be, by the ledger: the ticks that come due
// while a target has a CPU. At even distances that is the targets' time times
// the rate; at random ones, the targets' share of the time times the ticks that
// have really come due, where the source counts them.
//
// A tick that comes due in a handler which it cannot interrupt is taken behind
// it, and hits what the handler has interrupted. So to the time that the
// targets had belongs their share of the handlers': what share is not known to
// the ledger, but by the ticks, of which targets were hit by so many of all.
#pragma once

#include "lib/types.h"

// whole * part / (part + rest), to 2^-31 of `whole`; 0 of nothing.
static inline u64 expected_share(u64 whole, u64 part, u64 rest)
{
    u64 all = part + rest;
    while (all >> 31) {
        all >>= 1;
        part >>= 1;
    }
    return all ? whole / all * part + whole % all * part / all : 0;
}

// Ticks in so many TSC cycles, to the nearest.
static inline u64 expected_ticks(u64 cycles, u64 tsc_hz, u32 rate_hz)
{
    return cycles / tsc_hz * rate_hz +
           (cycles % tsc_hz * rate_hz + tsc_hz / 2) / tsc_hz;
}
