// Cheap random numbers: xorshift (G. Marsaglia, J. Stat. Soft. 8:14).
//
// Pure arithmetic: no locks; NMI-safe. *seed belongs to the caller and is not
// 0.
#pragma once

#include "lib/types.h"

// The next number of a sequence with period 2^32 - 1: each u32 but 0 occurs
// once.
static ALWAYS_INLINE u32 xorshift(u32 *seed)
{
    u32 x = *seed;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *seed = x;
}
