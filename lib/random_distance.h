// Random distances between samples, so that no loop of a program runs in step
// with the sampling, and no program can evade it (S. McCanne, C. Torek: A
// Randomized Sampling Clock for CPU Utilization Estimation and Code Profiling,
// USENIX Winter 1993).
//
// Pure arithmetic: no locks; NMI-safe. *seed belongs to the caller and is not
// 0.
#pragma once

#include "lib/types.h"
#include "lib/xorshift.h"

// Uniform from half a period to one and a half periods.
static ALWAYS_INLINE u32 random_distance(u32 *seed, u32 period)
{
    return (period + 1) / 2 + (u32)((u64)xorshift(seed) * period >> 32);
}
