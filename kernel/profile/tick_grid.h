// How many ticks of a periodic device an interrupt stands for: those that came
// while it could not be taken have merged into it.
//
// The device ticks on a grid. An interrupt may come late, never early; so the
// grid's place is that of the one that was least late, and what is told in all
// is the time that has passed, in periods, however late single ones are.
// An interrupt that is being entered when the CPU is held up finds later ticks
// due already, of which the last one's interrupt comes yet, for nothing: one
// that seems early by more than the clocks can differ.
//
// Pure arithmetic, of one CPU: no locks; NMI-safe. Times are TSC cycles.
#pragma once

#include "lib/types.h"

#define TICK_GRID_PERIOD_MAX 0x7fffffffu // for tick_grid_in_time

struct tick_grid {
    u64 last; // the tick that was told of last
};

static inline void tick_grid_start(struct tick_grid *g, u64 now)
{
    g->last = now;
}

// The usual case, cheaply: an interrupt at `now` stands for one tick. False: it
// is to be looked at (`period` 0: always). A CPU that was held up for some
// multiple of 2^32 cycles looks to be in time; the next look finds it out.
static ALWAYS_INLINE bool tick_grid_in_time(struct tick_grid *g, u64 now,
                                            u32 period)
{
    if (unlikely((u32)now - (u32)g->last - period >= period))
        return false;
    g->last += period;
    return true;
}

// How many ticks an interrupt at `now` stands for. 0: that one has been told
// of.
static inline u32 tick_grid_passed(struct tick_grid *g, u64 now, u64 period)
{
    u64 gap = now - g->last;
    if (gap < period - period / 8)
        return 0;
    if (gap < 2 * period) {
        g->last = MIN(now, g->last + period);
        return 1;
    }
    u32 ticks = (u32)(gap / period);
    g->last += ticks * period;
    return ticks;
}
