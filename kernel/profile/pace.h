// How many events lie between two samples.
//
// Pure arithmetic, of one CPU: no locks; NMI-safe. Times are TSC cycles.
#pragma once

#include "kernel/profile/throttle.h"

#define PACE_PERIOD_MIN 100 // events, when the period follows a rate

struct pace {
    u64 base;    // events between samples
    u64 target;  // cycles between samples, which `base` follows; 0: it is fixed
    u32 seed;    // periods vary by half, at random; 0: they do not
    u32 stretch; // log2 of how many periods are taken as one
    u64 last;    // when the last sample was; 0: there was none
    u64 began;   // of the stretch of time in which
    u32 window, spent; // sampling may cost a quarter of `window`, and has cost
    struct cost_meter meter;
};

// `window`: cycles in which sampling may take a quarter; about 10 ms.
static inline void pace_init(struct pace *p, u64 base, u64 target, u32 seed,
                             u32 window)
{
    *p = (struct pace){
        .base = base, .target = target, .seed = seed, .window = window
    };
    cost_meter_window(&p->meter, window);
}
// A sample is taken at `now`: how many events shall pass until the next.
u64 pace_next(struct pace *p, u64 now);
// Sampling has taken `sum` cycles in all until `now` (low half): what there is
// on this CPU, not for these events alone. Before pace_next.
void pace_spent(struct pace *p, u32 sum, u64 now);
