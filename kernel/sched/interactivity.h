// Interactivity: a score from how much a thread ran and slept recently. Pure:
// no locks, no clock.
//
// The score is that of FreeBSD's ULE with its corrected description (Roberson,
// "ULE: a modern scheduler for FreeBSD", 2003; freebsd-src pull request 431).
// With r the time run, s the time slept and HALF = 50:
//
//     r < s:  HALF * r / s               0 .. 49
//     r = s:  HALF
//     r > s:  2 * HALF - HALF * s / r    51 .. 100
//
// It grows with r, falls with s, and has no step where r = s. (The uncorrected
// description has one there, from HALF up to 2 * HALF.)
#pragma once

#include "lib/types.h"

#define INTERACTIVITY_MAX 100u
#define INTERACTIVITY_HALF 50u

// Any unit of time; only the proportion counts.
struct interactivity {
    u32 run, slept;
};

// The largest `limit` below: how much history is kept.
#define INTERACTIVITY_LIMIT_MAX (1u << 30)

// Exponential decay: while the history exceeds the limit, both sums are reduced
// by a quarter. So old behaviour is forgotten.
static inline void interactivity_decay(struct interactivity *h, u32 limit)
{
    while (unlikely(h->run + h->slept > limit)) {
        h->run -= DIV_ROUND_UP(h->run, 4);
        h->slept -= DIV_ROUND_UP(h->slept, 4);
    }
}

// Add run time and sleep time to the history.
static inline void interactivity_ran(struct interactivity *h, u32 time,
                                     u32 limit)
{
    h->run += MIN(time, limit);
    interactivity_decay(h, limit);
}
static inline void interactivity_slept(struct interactivity *h, u32 time,
                                       u32 limit)
{
    h->slept += MIN(time, limit);
    interactivity_decay(h, limit);
}

// 0 (only sleeps) .. INTERACTIVITY_MAX (only runs). 0 without any history.
static inline u32 interactivity_score(const struct interactivity *h)
{
    // HALF times the longest history must fit into 32 bits.
    u32 r = h->run >> 4, s = h->slept >> 4;
    if (r < s)
        return INTERACTIVITY_HALF * r / s;
    if (r > s)
        return INTERACTIVITY_MAX - INTERACTIVITY_HALF * s / r;
    return r ? INTERACTIVITY_HALF : 0;
}
