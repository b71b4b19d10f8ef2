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
}

static u64 vary(struct pace *p)
{
    u64 least = p->base / PACE_LEAST_PART;
    return least + random_count(&p->seed, p->base - least);
}

NOTRACE u64 pace_next(struct pace *p, u64 now)
{
    // A stretched interval is longer than the target on purpose.
    if (p->target && p->last && !p->merge_shift)
        follow(p, now - p->last);
    p->last = now;
    u64 period = p->seed ? vary(p) : p->base;
    return period << p->merge_shift;
}

// Compares the cost with a window, or with the time since the window began if
// that is longer: rare events may skip the end of a window.
NOTRACE void pace_spent(struct pace *p, u32 sum, u64 now)
{
    p->spent += cost_meter_read(&p->meter, sum);
    u64 passed = MAX(now - p->began, (u64)p->window);
    bool much = p->spent > passed / THROTTLE_PARTS;
    if (!much && now - p->began <= p->window)
        return;
    if (much && p->merge_shift < MERGE_SHIFT_MAX)
        p->merge_shift++;
    // Undone when twice as many samples would still be well within the limit.
    else if (p->spent < passed / (4 * THROTTLE_PARTS) && p->merge_shift)
        p->merge_shift--;
    p->began = now;
    p->spent = 0;
    cost_meter_window(&p->meter, p->window, PACE_BELIEVED);
}
