// How many shots of a timer an interrupt accounts for, where the distances
// between them are random (TIMER_RANDOM): the timer counts its shots, and each
// CPU remembers how many of them it has accounted for.
//
// The boot CPU counts a shot before it calls back. The interrupt of another CPU
// may arrive ahead of that count, by one shot at most, as the boot CPU sets the
// next shot after it has counted. Such an interrupt finds no new shot and is
// taken for the shot that is about to be counted, unless it follows the last
// accounted interrupt by less than the distance of any two shots. Then it was
// sent again after a delay of the boot CPU, or was pending while this CPU ran
// the previous handler. A wrong decision is corrected by the next count: the
// sum is never off by more than one.
//
// Pure arithmetic on one CPU's state: no locks; NMI-safe. Times are TSC cycles.
#pragma once

#include "lib/types.h"

struct shot_count {
    u32 accounted; // shots; ahead of the timer's count by one at most
    u32 last; // time of the last interrupt that accounted for a shot; low half
};

static inline void shot_count_start(struct shot_count *c, u32 shots, u32 now)
{
    *c = (struct shot_count){ shots, now };
}

// The shots that an interrupt at `now` accounts for, when the timer has counted
// `shots`; `min_distance` is less than the cycles between any two shots. 0: it
// belongs to no new shot.
static ALWAYS_INLINE u32 shot_count_passed(struct shot_count *c, u32 shots,
                                           u32 now, u32 min_distance)
{
    u32 passed = shots - c->accounted;
    if (unlikely((s32)passed <= 0)) {
        if (passed || now - c->last < min_distance)
            return 0;
        passed = 1;
    }
    c->accounted += passed;
    c->last = now;
    return passed;
}
