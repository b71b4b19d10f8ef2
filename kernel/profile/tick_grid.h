// How many ticks of a periodic device an interrupt accounts for: ticks that
// come due while it cannot be taken merge into it.
//
// The device ticks on a grid. An interrupt may be late, never early; so the
// phase of the grid is that of the least late interrupt, and the sum of
// accounted ticks is the elapsed time in periods, however late single
// interrupts are.
// If the CPU is held up while it enters an interrupt, that interrupt accounts
// for later ticks too, the last of which has an interrupt still pending. That
// interrupt then accounts for no tick; it is recognised because it seems early
// by more than the clocks can differ.
//
// Pure arithmetic on one CPU's state: no locks; NMI-safe. Times are TSC cycles.
#pragma once

#include "lib/types.h"

#define TICK_GRID_PERIOD_MAX 0x7fffffffu // for tick_grid_in_time

struct tick_grid {
    u32 low, high; // time of the last accounted tick
};

static inline u64 tick_grid_last(const struct tick_grid *g)
{
    return (u64)g->high << 32 | g->low;
}

// Starts the grid at `now`.
static inline void tick_grid_start(struct tick_grid *g, u64 now)
{
    *g = (struct tick_grid){ (u32)now, (u32)(now >> 32) };
}

// The fast path. True: an interrupt at `now` (low half) accounts for one tick.
// False: tick_grid_passed must be called (`period` 0: always). A CPU that was
// held up for some multiple of 2^32 cycles appears to be in time; the next
// tick_grid_passed corrects this.
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

// The ticks that an interrupt at `now` accounts for. 0: its tick is accounted
// already.
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
