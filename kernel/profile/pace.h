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
// The first window is this part of the others: until it is over, a period that
// is too short for the CPU leaves nothing to the program.
#define PACE_FIRST_WINDOW 64

struct pace {
    u64 base;        // events between samples, >= 1
    u64 target;      // cycles between samples, which `base` adapts to; 0: fixed
    bool varies;     // random, or adapts
    u32 seed;        // of random periods; 0: periods do not vary
    u32 merge_shift; // log2 of how many periods are merged into one
    u64 last;        // time of the last sample; 0: none yet
    // Events until the next sample, and what they are on average, which is the
    // weight of that sample.
    u64 distance, mean;
    u64 began; // time at which the current window began
    // Its length, that of all but the first, and the cost of sampling in it.
    u32 window, usual_window, spent;
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
        .varies = seed || target,
        .distance = base,
        .mean = base,
        .window = window / PACE_FIRST_WINDOW,
        .usual_window = window,
    };
    cost_meter_window(&p->meter, window, window / THROTTLE_BELIEVED_MOST);
}
// A sample is taken at `now`: returns the number of events until the next one.
u64 pace_draw(struct pace *p, u64 now);
static ALWAYS_INLINE u64 pace_next(struct pace *p, u64 now)
{
    return p->varies ? pace_draw(p, now) : p->mean;
}
// The events that a sample stands for: the mean distance, as the one drawn is
// independent of the program. `periods` distances have passed; those after the
// first are events of the NMI's entry, if the event is counted in the kernel.
static inline u64 pace_weight(const struct pace *p, u32 periods, bool kernel)
{
    bool beyond = unlikely(periods > 1) && !kernel;
    return beyond ? p->mean + (periods - 1) * p->distance : p->mean;
}
// Charges the cost of an NMI to the events `due` that it sampled, in equal
// parts.
void pace_divide(struct pace *paces, u32 due, u32 cost);
// Ends a window, or in the middle of one changes the period.
void pace_window(struct pace *p, u32 parts, u64 now);

// The event of `p`, the pace of this index in an array, is sampled by an NMI;
// `sum` is the cost of all before it.
static ALWAYS_INLINE void pace_charge(struct pace_nmis *n, struct pace *p,
                                      u32 index, u32 sum)
{
    u32 cost = sum - n->sum, due = n->due, bit = 1u << index;
    n->sum = sum;
    n->due = bit;
    if (likely(due == bit))
        p->spent += cost_meter_believed(&p->meter, cost);
    else if (cost)
        pace_divide(p - index, due, cost);
    else // a second event of the same NMI
        n->due |= due;
}

// Compares what the event's samples have cost until `now` with its share of the
// time that sampling may take, as one of `events`. Called before pace_next.
static ALWAYS_INLINE void pace_spent(struct pace *p, u32 events, u64 now)
{
    u32 parts = THROTTLE_PARTS * events;
    if (unlikely((u32)(now - p->began) > p->window ||
                 p->spent * parts > p->window))
        pace_window(p, parts, now);
}
