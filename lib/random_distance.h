// Random distances between samples, so that no loop of a program runs in step
// with the sampling, and no program can evade it (S. McCanne, C. Torek: A
// Randomized Sampling Clock for CPU Utilization Estimation and Code Profiling,
// USENIX Winter 1993).
//
// Samples at exponential distances are a Poisson process: where a sample falls
// says nothing about the next one, whatever the period of the code. And they
// have no memory: however long a distance has lasted, what is left of it is
// distributed as a whole one, so the time that a sample takes does not bring
// the next one nearer. They are drawn from a table of quantiles; behind the
// last one, that quantile and another draw. (docs/profiling.md: Distances)
//
// Pure arithmetic: no locks; NMI-safe. *seed belongs to the caller and is odd.
#pragma once

#include "lib/types.h"

#define RANDOM_MOST 11u // means; no distance is longer
#define RANDOM_UNIT_BITS 28

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

// On a straight line between two quantiles.
static ALWAYS_INLINE u32 random_between(u32 x)
{
    const u32 *part = &random_quantiles[x >> (32 - RANDOM_PART_BITS)];
    u32 width = part[1] - part[0], within = x << RANDOM_PART_BITS;
    return part[0] + (u32)((u64)width * within >> 32);
}

// From 0 to RANDOM_MOST, in 2^-RANDOM_UNIT_BITS.
static ALWAYS_INLINE u32 random_means(u32 *seed)
{
    u32 x = random_next(seed), last = RANDOM_PARTS - 1;
    if (unlikely(x >> (32 - RANDOM_PART_BITS) == last))
        return random_quantiles[last] + random_between(random_next(seed));
    return random_between(x);
}

// `mean` * `means` + `fraction`, where the latter two are in that unit.
static ALWAYS_INLINE u64 random_scale(u64 mean, u32 means, u32 fraction)
{
    u64 low = ((mean & 0xffffffff) * means + fraction) >> RANDOM_UNIT_BITS;
    u32 high = (u32)(mean >> 32);
    return unlikely(high) ? low + (u64)high * means * 16 : low;
}

// From 0 to RANDOM_MOST * mean.
static ALWAYS_INLINE u64 random_distance(u32 *seed, u64 mean)
{
    return random_scale(mean, random_means(seed), 0);
}

// Below 1, in that unit: so that rounding down is right on average.
static ALWAYS_INLINE u32 random_fraction(u32 *seed)
{
    return random_next(seed) >> (32 - RANDOM_UNIT_BITS);
}

// A whole number of events, at least one: `mean` (1 to 2^61) on average.
static inline u64 random_count(u32 *seed, u64 mean)
{
    u32 means = random_means(seed), fraction = random_fraction(seed);
    return 1 + random_scale(mean - 1, means, fraction);
}

// A row of points that are a random distance apart, `period` on average; with
// *seed 0 exactly that. Moves *due, a point that is not behind `now`, to the
// next one, which is then behind `now`, or at random distances may be due at
// once. Returns how many came due: of a time of several periods one in each, as
// on average.
static ALWAYS_INLINE u32 random_row_pass(u32 *seed, u64 *due, u64 now,
                                         u32 period)
{
    u32 points = 1;
    if (unlikely((s64)(now - *due) >= period)) {
        points += (u32)((now - *due) / period);
        *due += (u64)(points - 1) * period;
    }
    *due += *seed ? random_distance(seed, period) : period;
    return points;
}
