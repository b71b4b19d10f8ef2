// How many shots of a timer an interrupt stands for, where the distances
// between them are random (TIMER_RANDOM): the timer counts its shots, and each
// CPU remembers how many of them it has accounted for.
//
// The boot CPU counts a shot before it calls back. The interrupt of another CPU
// may come ahead of that count, by one shot at most, as the boot CPU sets the
// next one after it has counted. Such an interrupt has nothing new to stand
// for, and is taken for the shot that will be counted; but not when it follows
// the last one by less than any two shots do: it is then one that was sent
// again after a delay of the boot CPU, or that waited while this CPU was in
// the handler of the one before. Whatever is decided, the count that comes
// next puts it right: the sum is never off by more than one.
//
// Pure arithmetic, of one CPU: no locks; NMI-safe. Times are TSC cycles.
#pragma once

#include "lib/types.h"

struct shot_count {
    u32 accounted; // shots; ahead of the timer's count by one at most
    u32 last;      // when the last interrupt came that stood for any; low half
};

static inline void shot_count_start(struct shot_count *c, u32 shots, u32 now)
{
    *c = (struct shot_count){ shots, now };
}

// An interrupt at `now`, when the timer has counted `shots`; `closest` is less
// than the cycles between any two shots. 0: it is not a shot's.
static ALWAYS_INLINE u32 shot_count_passed(struct shot_count *c, u32 shots,
                                           u32 now, u32 closest)
{
    u32 passed = shots - c->accounted;
    if (unlikely((s32)passed <= 0)) {
        if (passed || now - c->last < closest)
            return 0;
        passed = 1;
    }
    c->accounted += passed;
    c->last = now;
    return passed;
}
