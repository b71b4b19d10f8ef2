// Distances between samples that are drawn at random, so that no loop of a
// program keeps step with the sampling, and no program can stay out of its way
// (S. McCanne, C. Torek: A Randomized Sampling Clock for CPU Utilization
// Estimation and Code Profiling, USENIX Winter 1993).
//
// Pure arithmetic: no locks; NMI-safe. *seed is the caller's, and not 0.
#pragma once

#include "lib/types.h"
#include "lib/xorshift.h"

// Uniform from half a period to one and a half.
static ALWAYS_INLINE u32 random_distance(u32 *seed, u32 period)
{
    return (period + 1) / 2 + (u32)((u64)xorshift(seed) * period >> 32);
}
