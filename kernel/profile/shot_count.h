// How many shots of a timer an interrupt accounts for, where the distances
// between them are random (TIMER_RANDOM): the timer counts its shots, and each
// CPU remembers how many of them it has accounted for.
//
// The boot CPU counts a shot before it calls back. The interrupt of another CPU
// may arrive ahead of that count, by one shot at most, as the boot CPU sets the
// next shot after it has counted. Such an interrupt finds no new shot and is
// taken for the shot that is about to be counted. If it was one sent again
// after a delay of the boot CPU, the next count corrects that: the sum is never
// off by more than one.
//
// Pure arithmetic on one CPU's state: no locks; NMI-safe.
#pragma once

#include "lib/types.h"

struct shot_count {
    u32 accounted; // shots; ahead of the timer's count by one at most
};

// The shots that an interrupt accounts for, when the timer has counted `shots`.
// 0: it belongs to no new shot.
static ALWAYS_INLINE u32 shot_count_passed(struct shot_count *c, u32 shots)
{
    u32 passed = shots - c->accounted;
    if (unlikely((s32)passed <= 0)) {
        if (passed)
            return 0;
        passed = 1;
    }
    c->accounted += passed;
    return passed;
}
