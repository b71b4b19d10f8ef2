// Random numbers that are cheap: xorshift (G. Marsaglia, J. Stat. Soft. 8:14).
//
// Pure arithmetic: no locks; NMI-safe. *seed is the caller's, and not 0.
#pragma once

#include "lib/types.h"

// The next of 2^32 - 1 numbers, each of which but 0 comes once.
static ALWAYS_INLINE u32 xorshift(u32 *seed)
{
    u32 x = *seed;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *seed = x;
}
