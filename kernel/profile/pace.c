// The sampling period in events: fixed, or adapted to a target rate; optionally
// random; and stretched when sampling would cost too much.

#include "kernel/profile/pace.h"

#define MERGE_MAX (1u << 20)

static void set_mean(struct pace *p, u64 mean)
{
    bool is_short = p->seed && mean <= UINT32_MAX / RANDOM_MOST;
    p->mean = p->distance = mean;
    p->least = is_short ? 1 + (u32)mean / PACE_LEAST_PART : 0;
    p->more = is_short ? (u32)mean - p->least : 0;
}

void pace_init(struct pace *p, u64 base, u64 target, u32 seed, u32 window)
{
    *p = (struct pace){
        .base = base,
        .target = target,
        .seed = seed,
        .merge = 1,
        .window = window / PACE_FIRST_WINDOW,
        .usual_window = window,
    };
    p->limit = p->window / THROTTLE_PARTS;
    set_mean(p, base);
    cost_meter_window(&p->meter, window, window / THROTTLE_BELIEVED_MOST);
}

// Adapts `base` after an interval of `gap` cycles. Events occur in bursts, and
// a halted CPU counts none, so one interval changes the estimate by at most a
// factor of two.
static void adapt(struct pace *p, u64 gap)
{
    u64 base = p->base;
    if (gap >= 2 * p->target)
        base /= 2;
    else if (gap <= p->target / 2)
        base *= 2;
    else
        base = base * p->target / gap;
    // Half the step, to damp oscillation.
    p->base = MAX((p->base + base) / 2, (u64)PACE_PERIOD_MIN);
    set_mean(p, p->base);
}

// A stretched interval is longer than the target on purpose.
NOTRACE void pace_follow(struct pace *p, u64 now)
{
    if (p->last && p->merge == 1)
        adapt(p, now - p->last);
    p->last = now;
}

NOTRACE u64 pace_draw(struct pace *p)
{
    u64 least = p->mean / PACE_LEAST_PART;
    return p->distance = least + random_count(&p->seed, p->mean - least);
}

NOTRACE void pace_divide(struct pace_nmis *n, struct pace *paces, u32 bit,
                         u32 cost)
{
    u32 due = n->due;
    n->due = cost ? bit : due | bit; // no cost: a second event of the same NMI
    if (!cost)
        return;
    if (due & (due - 1))
        cost /= (u32)__builtin_popcount(due);
    for (; due; due &= due - 1) {
        struct pace *p = &paces[__builtin_ctz(due)];
        p->spent += cost_meter_believed(&p->meter, cost);
    }
}

// Compares the cost with a window, or with the time since the window began if
// that is longer: rare events may skip the end of a window.
NOTRACE void pace_window(struct pace *p, u32 events, u64 now)
{
    u32 parts = THROTTLE_PARTS * events;
    u64 passed = MAX(now - p->began, (u64)p->window);
    bool much = p->spent > passed / parts;
    if (!much && now - p->began <= p->window)
        return;
    if (!much)
        p->window = MIN(2 * p->window, p->usual_window);
    if (much && p->merge < MERGE_MAX)
        p->merge *= 2;
    // Undone when twice as many samples would still be well within the limit.
    else if (p->spent < passed / (4 * parts) && p->merge > 1)
        p->merge /= 2;
    set_mean(p, p->base * p->merge);
    p->began = now;
    p->spent = 0;
    p->limit = p->window / parts;
    cost_meter_window(&p->meter, p->usual_window,
                      p->usual_window / THROTTLE_BELIEVED_MOST);
}
