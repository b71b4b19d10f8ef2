// Distances between samples that are drawn at random, so that no loop of a
// program keeps step with the sampling, and no program can stay out of its way
// (S. McCanne, C. Torek: A Randomized Sampling Clock for CPU Utilization
// Estimation and Code Profiling, USENIX Winter 1993).
//
// Pure arithmetic: no locks; NMI-safe. *seed is the caller's, and not 0.
#pragma once

#include "lib/types.h"

// The next of 2^32 - 1 numbers, each of which but 0 comes once: xorshift (G.
// Marsaglia, J. Stat. Soft. 8:14).
static ALWAYS_INLINE u32 xorshift(u32 *seed)
{
    u32 x = *seed;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *seed = x;
}

// Uniform from half a period to one and a half.
static ALWAYS_INLINE u32 random_distance(u32 *seed, u32 period)
{
    return (period + 1) / 2 + (u32)((u64)xorshift(seed) * period >> 32);
}
