// The sampling period of an event source: the number of events between two
// samples.
//
// Pure arithmetic on one CPU's state: no locks; NMI-safe. Times are TSC cycles.
#pragma once

#include "kernel/profile/throttle.h"

#define PACE_PERIOD_MIN 100 // events, when the period follows a rate
// The shortest random period is this part of the mean: at 20 kHz 2,000 cycles,
// more than a sample takes.
#define PACE_LEAST_PART 64
// The most of one reading that is believed: it may be of many samples, those of
// other sources between two of this one.
#define PACE_BELIEVED (1u << 31)

struct pace {
    u64 base;        // events between samples, at least 1
    u64 target;      // cycles between samples, which `base` adapts to; 0: fixed
    u32 seed;        // of random periods; 0: periods do not vary
    u32 merge_shift; // log2 of how many periods are merged into one
    u64 last;        // time of the last sample; 0: none yet
    u64 began;       // time at which the current window began
    // Its length, and the cost of sampling in it, of which a quarter is
    // allowed.
    u32 window, spent;
    struct cost_meter meter;
};

// `window`: cycles, about 10 ms, of which sampling may take a quarter.
static inline void pace_init(struct pace *p, u64 base, u64 target, u32 seed,
                             u32 window)
{
    *p = (struct pace){
        .base = base, .target = target, .seed = seed, .window = window
    };
    cost_meter_window(&p->meter, window, PACE_BELIEVED);
}
// A sample is taken at `now`: returns the number of events until the next one.
u64 pace_next(struct pace *p, u64 now);
// `sum`: TSC cycles (low half) that sampling has cost on this CPU until `now`,
// by all sources together. Called before pace_next.
void pace_spent(struct pace *p, u32 sum, u64 now);
