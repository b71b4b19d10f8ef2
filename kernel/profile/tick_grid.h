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
    u32 low, high; // the tick that was told of last
};

static inline u64 tick_grid_last(const struct tick_grid *g)
{
    return (u64)g->high << 32 | g->low;
}

// From `now` on.
static inline void tick_grid_start(struct tick_grid *g, u64 now)
{
    *g = (struct tick_grid){ (u32)now, (u32)(now >> 32) };
}

// The usual case, cheaply: an interrupt at `now` (low half) stands for one
// tick. False: it is to be looked at (`period` 0: always). A CPU that was held
// up for some multiple of 2^32 cycles looks to be in time; the next look finds
// it out.
static ALWAYS_INLINE bool tick_grid_in_time(struct tick_grid *g, u32 now,
                                            u32 period)
{
    u32 low;
    bool carry = __builtin_add_overflow(g->low, period, &low);
    if (unlikely(now - low >= period))
        return false;
    g->low = low;
    if (unlikely(carry))
        g->high++;
    return true;
}

// How many ticks an interrupt at `now` stands for. 0: that one has been told
// of.
static inline u32 tick_grid_passed(struct tick_grid *g, u64 now, u64 period)
{
    u64 last = tick_grid_last(g), gap = now - last;
    if (gap < period - period / 8)
        return 0;
    if (gap < 2 * period) {
        tick_grid_start(g, MIN(now, last + period));
        return 1;
    }
    u32 ticks = (u32)(gap / period);
    tick_grid_start(g, last + ticks * period);
    return ticks;
}
