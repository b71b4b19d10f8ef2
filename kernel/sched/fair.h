// Fair shares: virtual time. Pure: no locks, no clock.
//
// A thread's virtual time is the CPU time it consumed, divided by its weight.
// The batch thread of a CPU with the least virtual time runs next. So threads
// of equal weight get equal time, others in proportion to their weights,
// however short their slices are cut.
#pragma once

#include "lib/types.h"

#define FAIR_WEIGHT_0 1024u // of nice 0

// Each step of nice is a factor of 1.25: beside nice 0, nice 1 gets 44 % of a
// CPU, nice 5 25 %, nice 10 10 %, nice 19 1.4 %. nice: -20 .. 19.
u32 fair_weight(int nice);
// CPU time (any unit; 0 if it is negative) as virtual time.
u64 fair_scale(u64 time, int nice);
static inline u64 fair_virtual(u64 time, int nice)
{
    return likely(!nice) ? time : fair_scale(time, nice);
}
