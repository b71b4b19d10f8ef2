// How many interrupts a session was offered on a CPU, for the division of their
// cost (cost.c).
//
// An interrupt of that CPU adds 1 to one of the counters, concurrently with a
// reader on another CPU. Nothing is subtracted: in whatever order the reader
// finds the counters, the sum is between those before and after the reading,
// and never decreases.
#pragma once

#include "lib/counter.h"

// Interrupts counted since the last call. *seen: all until then.
static inline u64 offered_newly(u64 *seen, const struct counter *counters,
                                u32 count)
{
    u64 sum = 0;
    for (u32 i = 0; i < count; i++)
        sum += counter_read(&counters[i]);
    u64 newly = sum - *seen;
    *seen = sum;
    return newly;
}
