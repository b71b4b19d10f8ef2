// Sampling may take a quarter of a CPU, looked at over a window of time.
//
// What a sample took is the difference of two readings of a sum of TSC cycles,
// and the TSC goes on while a host runs something else on this CPU's turn. So
// one reading is believed up to a limit only, which doubles with each that is
// above it and halves with each window without one: a CPU that was taken away
// once throttles nothing, and seven samples that are dear are counted in full.
// And samples are refused only when the window before was too dear as well.
//
// Pure arithmetic, of one CPU: no locks; NMI-safe.
#pragma once

#include "lib/types.h"

// Sampling may take this part of a window, and one reading that of the former.
#define THROTTLE_PARTS 4
#define THROTTLE_BELIEVED 64

// Of a sum that grows; u32s of it wrap.
struct cost_meter {
    u32 sum;      // when it was read last
    u32 most;     // that one reading is believed
    bool doubted; // one of this window was more
};

static NOINLINE UNUSED u32 cost_meter_doubt(struct cost_meter *m)
{
    u32 most = m->most;
    m->most = most >> 31 ? most : 2 * most;
    m->doubted = true;
    return most;
}

// What the sum has grown by since the last reading.
static ALWAYS_INLINE u32 cost_meter_read(struct cost_meter *m, u32 sum)
{
    u32 cost = sum - m->sum;
    m->sum = sum;
    return likely(cost <= m->most) ? cost : cost_meter_doubt(m);
}

// At the beginning of each window of so many cycles.
static inline void cost_meter_window(struct cost_meter *m, u32 window)
{
    u32 least = window / THROTTLE_PARTS / THROTTLE_BELIEVED;
    if (!m->doubted)
        m->most = MAX(m->most / 2, least);
    m->doubted = false;
}

struct throttle {
    u32 began;  // the window; TSC, low half
    u32 spent;  // in it, cycles
    u32 window; // cycles
    u32 beside; // what each interrupt takes that is not in the sum
    u32 limit;  // of `spent`: no samples above it
    struct cost_meter meter;
};

static inline void throttle_init(struct throttle *t, u32 window, u32 beside)
{
    *t = (struct throttle){ .window = window, .beside = beside, .limit = ~0u };
    cost_meter_window(&t->meter, window);
}

static NOINLINE UNUSED void throttle_window(struct throttle *t, u32 now)
{
    u32 allowed = t->window / THROTTLE_PARTS;
    t->limit = t->spent > allowed ? allowed : ~0u;
    t->began = now;
    t->spent = 0;
    cost_meter_window(&t->meter, t->window);
}

// An interrupt for a sample at `now`, where those before it took `sum` in all.
// Sampling takes too much while `spent` is above `limit`.
static ALWAYS_INLINE void throttle_add(struct throttle *t, u32 now, u32 sum)
{
    t->spent += cost_meter_read(&t->meter, sum) + t->beside;
    if (unlikely(now - t->began >= t->window))
        throttle_window(t, now);
}
