// The sampling period in events: fixed, or adapted to a target rate; optionally
// random; and stretched when sampling would cost too much.

#include "kernel/profile/pace.h"

#include "lib/random_distance.h"

#define MERGE_SHIFT_MAX 20u

// Adapts `base` after an interval of `gap` cycles. Events occur in bursts, and
// a halted CPU counts none, so one interval changes the estimate by at most a
// factor of two.
static void follow(struct pace *p, u64 gap)
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
    p->mean = p->base;
}

static u64 vary(struct pace *p)
{
    u64 least = p->base / PACE_LEAST_PART;
    return least + random_count(&p->seed, p->base - least);
}

// A stretched interval is longer than the target on purpose.
static NOTRACE NOINLINE void adapt(struct pace *p, u64 now)
{
    if (p->last && !p->merge_shift)
        follow(p, now - p->last);
    p->last = now;
}

NOTRACE u64 pace_draw(struct pace *p, u64 now)
{
    if (unlikely(p->target))
        adapt(p, now);
    p->distance = p->seed ? vary(p) : p->base;
    if (unlikely(p->merge_shift))
        p->distance <<= p->merge_shift;
    return p->distance;
}

NOTRACE void pace_divide(struct pace *paces, u32 due, u32 cost)
{
    if (due & (due - 1))
        cost /= (u32)__builtin_popcount(due);
    for (; due; due &= due - 1) {
        struct pace *p = &paces[__builtin_ctz(due)];
        p->spent += cost_meter_believed(&p->meter, cost);
    }
}

// Compares the cost with a window, or with the time since the window began if
// that is longer: rare events may skip the end of a window.
NOTRACE void pace_window(struct pace *p, u32 parts, u64 now)
{
    u64 passed = MAX(now - p->began, (u64)p->window);
    bool much = p->spent > passed / parts;
    if (!much && now - p->began <= p->window)
        return;
    if (!much)
        p->window = MIN(2 * p->window, p->usual_window);
    if (much && p->merge_shift < MERGE_SHIFT_MAX)
        p->merge_shift++;
    // Undone when twice as many samples would still be well within the limit.
    else if (p->spent < passed / (4 * parts) && p->merge_shift)
        p->merge_shift--;
    p->mean = p->distance = p->base << p->merge_shift;
    p->began = now;
    p->spent = 0;
    cost_meter_window(&p->meter, p->usual_window,
                      p->usual_window / THROTTLE_BELIEVED_MOST);
}
