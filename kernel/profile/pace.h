// The sampling period of an event source: the number of events between two
// samples.
//
// Pure arithmetic on one CPU's state: no locks; NMI-safe. Times are TSC cycles.
#pragma once

#include "kernel/profile/throttle.h"
#include "lib/random_distance.h"

#define PACE_PERIOD_MIN 100 // events, when the period follows a rate
// The shortest random period is this part of the mean: at 20 kHz 2,000 cycles,
// more than a sample takes.
#define PACE_LEAST_PART 64
// The first window is this part of the others: until it is over, a period that
// is too short for the CPU leaves nothing to the program.
#define PACE_FIRST_WINDOW 64

struct pace {
    u64 base;   // events between samples, >= 1
    u64 target; // cycles between samples, which `base` adapts to; 0: fixed
    u32 seed;   // of random periods; 0: periods do not vary
    u32 merge;  // how many periods are merged into one: a power of 2
    u64 last;   // time of the last sample; 0: none yet
    // Events until the next sample, and what they are on average, which is the
    // weight of that sample.
    u64 distance, mean;
    // A random number of less than 32 bits is `least`, and a random one of mean
    // `more`. 0: there are none, or they are longer.
    u32 least, more;
    u64 began; // time at which the current window began
    // Its length, that of all but the first, the cost of sampling in it, and
    // that which is too much.
    u32 window, usual_window, spent, limit;
    struct cost_meter meter;
};

// The NMIs of one CPU: the events that were sampled by the last one, and the
// TSC cycles (low half) of all before it.
struct pace_nmis {
    u32 due; // mask of indices of paces
    u32 sum;
};

// `window`: cycles, about 10 ms, of which sampling may take a quarter.
void pace_init(struct pace *p, u64 base, u64 target, u32 seed, u32 window);
// Adapts the mean to the time since the last sample.
void pace_follow(struct pace *p, u64 now);
// A random number of events of any size.
u64 pace_draw(struct pace *p);

// A sample is taken at `now`: returns the number of events until the next one.
static ALWAYS_INLINE u64 pace_next(struct pace *p, u64 now)
{
    if (unlikely(p->target))
        pace_follow(p, now);
    if (unlikely(!p->more))
        return p->seed ? pace_draw(p) : p->mean;
    u32 means = random_means(&p->seed), fraction = random_fraction(&p->seed);
    return p->distance = p->least + (u32)random_scale(p->more, means, fraction);
}

// The events that a sample stands for: the mean distance, as the one drawn is
// independent of the program. `periods` distances have passed; those after the
// first are events of the NMI's entry, if the event is counted in the kernel.
static inline u64 pace_weight(const struct pace *p, u32 periods, bool kernel)
{
    if (likely(periods == 1) || kernel)
        return p->mean;
    return p->mean + (periods - 1) * p->distance;
}

// Charges `cost` to the events of the last NMI, in equal parts: they were
// several, or others than that of `bit`, which is sampled now.
void pace_divide(struct pace_nmis *n, struct pace *paces, u32 bit, u32 cost);
// Ends a window, or in the middle of one changes the period.
void pace_window(struct pace *p, u32 events, u64 now);

// The event of `p` is sampled by an NMI; `sum` is the cost of all before it.
// `bit`: of the index of `p` in an array.
static ALWAYS_INLINE void pace_charge(struct pace_nmis *n, struct pace *p,
                                      u32 bit, u32 sum)
{
    u32 cost = sum - n->sum;
    n->sum = sum;
    if (likely(n->due == bit))
        p->spent += cost_meter_believed(&p->meter, cost);
    else
        pace_divide(n, p - __builtin_ctz(bit), bit, cost);
}

// Compares what the event's samples have cost until `now` with its share of the
// time that sampling may take, as one of `events`. Called before pace_next.
static ALWAYS_INLINE void pace_spent(struct pace *p, const u32 *events, u64 now)
{
    if (unlikely((u32)(now - p->began) > p->window || p->spent > p->limit))
        pace_window(p, READ_ONCE(*events), now);
}
