// IA32_THERM_STATUS (SDM vol. 3B, 15.8.5.2), and when to speak of it. Pure
// code.
#pragma once

#include "lib/types.h"

#define HEAT_NOW 0x01     // the CPU throttles itself
#define HEAT_LOGGED 0x02  // it has done so; sticky, cleared by a 0
#define HEAT_STICKY 0xaaa // all sticky bits: a 1 changes nothing

#define HEAT_LOG_PERIOD (60 * 1000000000ull)

// The value that clears HEAT_LOGGED alone.
static inline u64 heat_cleared(u64 status)
{
    return status & HEAT_STICKY & ~(u64)HEAT_LOGGED;
}

// Whether an interrupt with this status is throttling.
static inline bool heat_counts(u64 status)
{
    return status & (HEAT_NOW | HEAT_LOGGED);
}

// Whether it is logged now: the first time, and once a period. *next is 0 at
// the start.
static inline bool heat_is_logged(u64 *next, u64 now)
{
    if (now < *next)
        return false;
    *next = now + HEAT_LOG_PERIOD;
    return true;
}
