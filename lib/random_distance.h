// Random distances between samples, so that no loop of a program runs in step
// with the sampling, and no program can evade it (S. McCanne, C. Torek: A
// Randomized Sampling Clock for CPU Utilization Estimation and Code Profiling,
// USENIX Winter 1993).
//
// Samples at exponential distances are a Poisson process: where a sample falls
// says nothing about the next one, whatever the period of the code. The
// distances are cut at RANDOM_MOST means. The part of the distribution below
// that is drawn from, scaled by 1.112 so that the mean is right again. It is
// interpolated from a table of its quantiles. (docs/profiling.md: Distances)
//
// Pure arithmetic: no locks; NMI-safe. *seed belongs to the caller and is odd.
#pragma once

#include "lib/types.h"

#define RANDOM_MOST 4u // means

#define RANDOM_PART_BITS 6
#define RANDOM_PARTS (1u << RANDOM_PART_BITS)
extern const u32 random_quantiles[RANDOM_PARTS + 1];

// The next of 2^30 numbers, of which the high bits are the random ones (G.
// Steele, S. Vigna: Computationally Easy, Spectrally Good Multipliers for
// Congruential Pseudorandom Number Generators, 2022).
static ALWAYS_INLINE u32 random_next(u32 *seed)
{
    return *seed *= 0x93d765ddu;
}

// From 0 to RANDOM_MOST, in 2^-30.
static ALWAYS_INLINE u32 random_means(u32 *seed)
{
    u32 x = random_next(seed);
    const u32 *part = &random_quantiles[x >> (32 - RANDOM_PART_BITS)];
    u32 width = part[1] - part[0], within = x << RANDOM_PART_BITS;
    return part[0] + (u32)((u64)width * within >> 32);
}

// `mean` * `means` + `fraction`, where the latter two are in 2^-30.
static ALWAYS_INLINE u64 random_scale(u64 mean, u32 means, u32 fraction)
{
    u64 low = ((mean & 0xffffffff) * means + fraction) >> 30;
    u32 high = (u32)(mean >> 32);
    return unlikely(high) ? low + (u64)high * means * 4 : low;
}

// From 0 to RANDOM_MOST * mean.
static ALWAYS_INLINE u64 random_distance(u32 *seed, u64 mean)
{
    return random_scale(mean, random_means(seed), 0);
}

// A whole number of events, at least one: `mean` (1 to 2^61) on average.
static inline u64 random_count(u32 *seed, u64 mean)
{
    u32 means = random_means(seed);
    return 1 + random_scale(mean - 1, means, random_next(seed) >> 2);
}

// A row of points, `least` plus a random distance apart, `period` on average;
// with *seed 0 they are exactly that apart. Moves *due, the row's next point,
// behind `now`. Returns how many came due: of a time of several periods one in
// each, as on average.
static ALWAYS_INLINE u32 random_row_pass(u32 *seed, u64 *due, u64 now,
                                         u32 least, u32 period)
{
    u32 points = 0;
    if (unlikely((s64)(now - *due) >= period)) {
        points = (u32)((now - *due) / period);
        *due += (u64)points * period;
    }
    do {
        points++;
        *due += *seed ? least + random_distance(seed, period - least) : period;
    } while (unlikely(*due <= now));
    return points;
}
