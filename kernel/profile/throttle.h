// The sampling throttle: sampling may take a quarter of a CPU, and a window of
// time at once. And the ticks that come due in sampling itself.
//
// Each interrupt that takes a sample adds its cost to an account, from which a
// quarter of the time that passes is taken. While the account is above a
// window, one tick of 2^n yields a sample, for n that grows with the excess. It
// is drawn by lot and stands for 2^n ticks: so what a sample costs says nothing
// about which code is sampled next, and the weights are right on average.
// Interrupts that take none are not charged: so in each window a quarter of it
// is there for samples, however much the interrupts themselves cost.
//
// A tick that comes due in the handler of another one is taken when that
// returns, and would sample the code behind the code that was just sampled, the
// more often the more that costs. It is recognised by the time between the two
// that was spent outside of handlers: none.
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

#include "lib/random_distance.h"

// Sampling may take 1 / THROTTLE_PARTS of a CPU. One reading is believed up to
// a window / THROTTLE_BELIEVED at first, / THROTTLE_BELIEVED_MOST at the most.
#define THROTTLE_PARTS 4
#define THROTTLE_BELIEVED 256
#define THROTTLE_BELIEVED_MOST 8
// Above a window half of the ticks yield no sample, and each window /
// THROTTLE_STEPS more halves the others once more, up to so many times.
#define THROTTLE_STEPS 16
#define THROTTLE_HALVINGS 9u

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
    u32 began;          // TSC at the start of the window, low half
    u32 paid;           // TSC up to which a quarter has been taken from `spent`
    u32 spent;          // cycles; above `window` samples are taken by lot
    u32 window;         // cycles
    u32 overhead;       // cycles of each interrupt that are not in the sum
    u32 charged;        // the last interrupt took a sample: ~0, else 0
    u32 outside;        // TSC at its entry, without the sum
    u32 seed;           // of the lots
    u32 since;          // what throttle_since returned (interrupts but NMIs)
    const void *source; // whose tick that interrupt brought (the same)
    u32 behind;         // below this a tick came due in a handler; 0: none does
    u32 notice; // `behind`; while each tick has a rare duty: the largest
    struct cost_meter meter;
};

// `seed`: any.
static inline void throttle_init(struct throttle *t, u32 window, u32 overhead,
                                 u32 seed)
{
    *t = (struct throttle){ .window = window,
                            .overhead = overhead,
                            .seed = seed | 1 };
    cost_meter_window(&t->meter, window, window / THROTTLE_BELIEVED_MOST);
}

static ALWAYS_INLINE void throttle_pay(struct throttle *t, u32 now)
{
    u32 quarter = (now - t->paid) / THROTTLE_PARTS;
    t->paid += quarter * THROTTLE_PARTS;
    t->spent -= MIN(t->spent, quarter);
}

// What exceeds two windows was not sampling.
static NOINLINE UNUSED void throttle_window(struct throttle *t, u32 now)
{
    t->spent = MIN(t->spent, 2 * t->window);
    throttle_pay(t, now);
    t->began = now;
    cost_meter_window(&t->meter, t->window, t->window / THROTTLE_BELIEVED_MOST);
}

static ALWAYS_INLINE bool throttle_is_over(const struct throttle *t)
{
    return t->spent > t->window;
}

// For a tick while the throttle is over: true, for half of them: it yields no
// sample. Else the number of ticks at `now` that its sample stands for; 0: it
// takes none either.
static ALWAYS_INLINE bool throttle_refuses(struct throttle *t)
{
    return random_next(&t->seed) >> 31;
}
static inline u32 throttle_draw(struct throttle *t, u32 now)
{
    u32 n = 0;
    throttle_pay(t, now);
    if (throttle_is_over(t))
        n = (t->spent - t->window) / (t->window / THROTTLE_STEPS);
    n = 1 + MIN(n, THROTTLE_HALVINGS);
    return t->seed >> (32 - n) ? 0 : 1u << n;
}

// The present interrupt takes a sample.
static ALWAYS_INLINE void throttle_charge(struct throttle *t)
{
    t->charged = ~0u;
}

// For an interrupt for a sample that was entered at `now`; `sum` is the cost of
// all before it. Returns the cycles outside of handlers since the end of the
// one before: with none, it came due in that one.
static ALWAYS_INLINE u32 throttle_since(struct throttle *t, u32 now, u32 sum)
{
    u32 outside = now - sum, since = outside - t->outside;
    t->outside = outside;
    return since;
}

// Accounts that interrupt. Then throttle_charge and throttle_draw are about it.
static ALWAYS_INLINE void throttle_add(struct throttle *t, u32 now, u32 sum)
{
    t->spent += (cost_meter_read(&t->meter, sum) + t->overhead) & t->charged;
    t->charged = 0;
    if (unlikely(now - t->began >= t->window))
        throttle_window(t, now);
}
