// The sampling period of an event source: the number of events between two
// samples.
//
// Pure arithmetic on one CPU's state: no locks; NMI-safe. Times are TSC cycles.
#pragma once

#include "kernel/profile/throttle.h"

#define PACE_PERIOD_MIN 100 // events, when the period follows a rate
// The first window is this part of the others: until it is over, a period that
// is too short for the CPU leaves nothing to the program.
#define PACE_FIRST_WINDOW 64

struct pace {
    u64 base;        // events between samples
    u64 target;      // cycles between samples, which `base` adapts to; 0: fixed
    u32 seed;        // of random periods (+-50 %); 0: periods do not vary
    u32 merge_shift; // log2 of how many periods are merged into one
    u64 last;        // time of the last sample; 0: none yet
    // Events until the next sample, and what they are on average, which is the
    // weight of that sample.
    u64 distance, mean;
    u64 began; // time at which the current window began
    // Its length, that of all but the first, and the cost of sampling in it.
    u32 window, usual_window, spent;
    u32 cost; // of all samples until now, charged by pace_charge; low half
    struct cost_meter meter;
};

// The NMIs of one CPU: the events that were sampled by the last one, and the
// TSC cycles (low half) of all before it.
struct pace_nmis {
    u32 due; // mask of indices of paces
    u32 sum;
};

// `window`: cycles, about 10 ms, of which sampling may take a quarter.
static inline void pace_init(struct pace *p, u64 base, u64 target, u32 seed,
                             u32 window)
{
    *p = (struct pace){
        .base = base,
        .target = target,
        .seed = seed,
        .distance = base,
        .mean = base,
        .window = window / PACE_FIRST_WINDOW,
        .usual_window = window,
    };
    cost_meter_window(&p->meter, window, window / THROTTLE_BELIEVED_MOST);
}
// A sample is taken at `now`: returns the number of events until the next one.
u64 pace_next(struct pace *p, u64 now);
// The events that a sample stands for: the mean distance, as the one drawn is
// independent of the program. `periods` distances have passed; those after the
// first are events of the NMI's entry, if the event is counted in the kernel.
static inline u64 pace_weight(const struct pace *p, u32 periods, bool kernel)
{
    return p->mean + (kernel ? 0 : (periods - 1) * p->distance);
}
// The event paces[index] is sampled by an NMI; `sum` is the cost of all before
// it. Charges the cost of the last one to the events that it sampled, in equal
// parts.
void pace_charge(struct pace_nmis *n, struct pace *paces, u32 index, u32 sum);
// Compares what the event's samples have cost until `now` with its share of the
// time that sampling may take, as one of `events`. Called before pace_next.
void pace_spent(struct pace *p, u32 events, u64 now);
