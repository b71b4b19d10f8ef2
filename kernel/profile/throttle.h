// The sampling throttle: sampling may take a quarter of a CPU, and a window of
// time at once.
//
// Each interrupt that takes a sample adds its cost to an account, from which a
// quarter of the time that passes is taken. Samples are refused while the
// account is above a window. Interrupts that take none are not charged: so in
// each window a quarter of it is there for samples, however much the interrupts
// themselves cost.
//
// The cost of a sample is the difference of two readings of a sum of TSC
// cycles. The TSC also advances while a host runs something else on this CPU.
// So one reading is believed up to a limit only, which doubles with each
// reading above it and halves with each window without one above its half: a
// CPU that was taken away once throttles nothing, and the sixth of six
// expensive samples is believed up to an eighth of a window. That is the most:
// samples that come less often than every half window are never refused,
// whatever a host, or a debugger, does in the middle of each.
//
// Pure arithmetic on one CPU's state: no locks; NMI-safe.
#pragma once

#include "lib/types.h"

// Sampling may take 1 / THROTTLE_PARTS of a CPU. One reading is believed up to
// a window / THROTTLE_BELIEVED at first, / THROTTLE_BELIEVED_MOST at the most.
#define THROTTLE_PARTS 4
#define THROTTLE_BELIEVED 256
#define THROTTLE_BELIEVED_MOST 8

// The meter of a growing sum, of which the low 32 bits are read: they may wrap.
struct cost_meter {
    u32 sum;   // at the last reading
    u32 usual; // half of the limit up to which one reading is believed
    u32 most;  // of `usual`
    bool dear; // a reading of this window exceeded `usual`
};

static NOTRACE NOINLINE UNUSED u32 cost_meter_dear(struct cost_meter *m,
                                                   u32 cost)
{
    u32 limit = 2 * m->usual;
    m->dear = true;
    if (cost <= limit)
        return cost;
    m->usual = MIN(limit, m->most);
    return limit;
}

// A cost, up to the limit.
static ALWAYS_INLINE u32 cost_meter_believed(struct cost_meter *m, u32 cost)
{
    return likely(cost <= m->usual) ? cost : cost_meter_dear(m, cost);
}

// The growth of the sum since the last reading, up to the limit.
static ALWAYS_INLINE u32 cost_meter_read(struct cost_meter *m, u32 sum)
{
    u32 cost = sum - m->sum;
    m->sum = sum;
    return cost_meter_believed(m, cost);
}

// Called at the beginning of each window of `window` cycles. One reading is
// never believed above `most`.
static inline void cost_meter_window(struct cost_meter *m, u32 window, u32 most)
{
    if (!m->dear)
        m->usual = MAX(m->usual / 2, window / THROTTLE_BELIEVED / 2);
    m->most = most / 2;
    m->dear = false;
}

struct throttle {
    u32 began;    // TSC at the start of the window, low half
    u32 spent;    // cycles; samples are refused while it is above `window`
    u32 window;   // cycles
    u32 overhead; // cycles of each interrupt that are not in the sum
    u32 charged;  // the last interrupt took a sample: ~0, else 0
    struct cost_meter meter;
};

static inline void throttle_init(struct throttle *t, u32 window, u32 overhead)
{
    *t = (struct throttle){ .window = window, .overhead = overhead };
    cost_meter_window(&t->meter, window, window / THROTTLE_BELIEVED_MOST);
}

// What exceeds two windows was not sampling.
static NOINLINE UNUSED void throttle_window(struct throttle *t, u32 now)
{
    u32 spent = MIN(t->spent, 2 * t->window);
    t->spent = spent - MIN(spent, (now - t->began) / THROTTLE_PARTS);
    t->began = now;
    cost_meter_window(&t->meter, t->window, t->window / THROTTLE_BELIEVED_MOST);
}

static ALWAYS_INLINE bool throttle_refuses(const struct throttle *t)
{
    return t->spent > t->window;
}

// The present interrupt takes a sample.
static ALWAYS_INLINE void throttle_charge(struct throttle *t)
{
    t->charged = ~0u;
}

// Accounts an interrupt for a sample at `now`; `sum` is the cost of all before
// it. Then throttle_refuses and throttle_charge are about the present one.
static ALWAYS_INLINE void throttle_add(struct throttle *t, u32 now, u32 sum)
{
    t->spent += (cost_meter_read(&t->meter, sum) + t->overhead) & t->charged;
    t->charged = 0;
    if (unlikely(now - t->began >= t->window))
        throttle_window(t, now);
}
