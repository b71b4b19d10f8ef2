// How many events lie between two samples.
//
// Pure arithmetic, of one CPU: no locks; NMI-safe. Times are TSC cycles.
#pragma once

#include "lib/types.h"

#define PACE_PERIOD_MIN 100 // events, when the period follows a rate

struct pace {
    u64 base;    // events between samples
    u64 target;  // cycles between samples, which `base` follows; 0: it is fixed
    u32 seed;    // periods vary by half, at random; 0: they do not
    u32 stretch; // log2 of how many periods are taken as one
    u64 last;    // when the last sample was; 0: there was none
    u64 began;   // of the stretch of time in which
    u32 window, spent; // sampling may cost a quarter of `window`, and has cost
};

// `window`: cycles in which sampling may take a quarter; about 10 ms.
static inline void pace_init(struct pace *p, u64 base, u64 target, u32 seed,
                             u32 window)
{
    *p = (struct pace){
        .base = base, .target = target, .seed = seed, .window = window
    };
}
// A sample is taken at `now`: how many events shall pass until the next.
u64 pace_next(struct pace *p, u64 now);
// Sampling has taken so many cycles until `now`.
void pace_spent(struct pace *p, u32 cycles, u64 now);
