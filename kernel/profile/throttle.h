// The sampling throttle: sampling may take a quarter of a CPU, measured over a
// window of time.
//
// The cost of a sample is the difference of two readings of a sum of TSC
// cycles. The TSC also advances while a host runs something else on this CPU.
// So one reading is believed up to a limit only, which doubles with each
// reading above it and halves with each window without one: a CPU that was
// taken away once throttles nothing, and the seventh of seven expensive samples
// is believed up to all that sampling may take. Samples are refused only when
// the previous window was too expensive as well.
//
// Pure arithmetic on one CPU's state: no locks; NMI-safe.
#pragma once

#include "lib/types.h"

// Sampling may take a window / THROTTLE_PARTS. One reading is believed at first
// up to that / THROTTLE_BELIEVED.
#define THROTTLE_PARTS 4
#define THROTTLE_BELIEVED 64

// The meter of a growing sum, of which the low 32 bits are read: they may wrap.
struct cost_meter {
    u32 sum;       // at the last reading
    u32 max_cost;  // limit up to which one reading is believed
    bool exceeded; // a reading of this window exceeded it
};

static NOTRACE NOINLINE UNUSED u32 cost_meter_exceeded(struct cost_meter *m)
{
    u32 max_cost = m->max_cost;
    m->max_cost = max_cost >> 31 ? max_cost : 2 * max_cost;
    m->exceeded = true;
    return max_cost;
}

// The growth of the sum since the last reading, up to the limit.
static ALWAYS_INLINE u32 cost_meter_read(struct cost_meter *m, u32 sum)
{
    u32 cost = sum - m->sum;
    m->sum = sum;
    return likely(cost <= m->max_cost) ? cost : cost_meter_exceeded(m);
}

// Called at the beginning of each window of `window` cycles.
static inline void cost_meter_window(struct cost_meter *m, u32 window)
{
    u32 least = window / THROTTLE_PARTS / THROTTLE_BELIEVED;
    if (!m->exceeded)
        m->max_cost = MAX(m->max_cost / 2, least);
    m->exceeded = false;
}

struct throttle {
    u32 began;    // TSC at the start of the window, low half
    u32 spent;    // cycles in this window
    u32 window;   // cycles
    u32 overhead; // cycles of each interrupt that are not in the sum
    u32 limit;    // samples are refused while `spent` is above it
    struct cost_meter meter;
};

static inline void throttle_init(struct throttle *t, u32 window, u32 overhead)
{
    *t = (struct throttle){ .window = window,
                            .overhead = overhead,
                            .limit = ~0u };
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

// Accounts an interrupt for a sample at `now`; `sum` is the cost of all before
// it. Sampling takes too much while `spent` is above `limit`.
static ALWAYS_INLINE void throttle_add(struct throttle *t, u32 now, u32 sum)
{
    t->spent += cost_meter_read(&t->meter, sum) + t->overhead;
    if (unlikely(now - t->began >= t->window))
        throttle_window(t, now);
}
