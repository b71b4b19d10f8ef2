// Interactivity: how much a thread ran and how much it slept of late, as one
// number. Pure: no locks, no clock.
//
// The score is that of FreeBSD's ULE with its corrected description (Roberson,
// "ULE: a modern scheduler for FreeBSD", 2003; freebsd-src pull request 431).
// With r the time run, s the time slept and HALF = 50:
//
//     r < s:  HALF * r / s               0 .. 49
//     r = s:  HALF
//     r > s:  2 * HALF - HALF * s / r    51 .. 100
//
// It grows with r, falls with s, and has no step where the two are equal. (By
// the old description it had: from HALF up to 2 * HALF.)
#pragma once

#include "lib/types.h"

#define INTERACTIVITY_MAX 100u
#define INTERACTIVITY_HALF 50u

// Any unit of time; only the proportion counts.
struct interactivity {
    u32 run, slept;
};

// How much history is kept, at most: `limit` below.
#define INTERACTIVITY_LIMIT_MAX (1u << 30)

// Beyond the limit all that was is worth a quarter less, again and again: so
// old habits are forgotten.
static inline void interactivity_decay(struct interactivity *h, u32 limit)
{
    while (unlikely(h->run + h->slept > limit)) {
        h->run -= DIV_ROUND_UP(h->run, 4);
        h->slept -= DIV_ROUND_UP(h->slept, 4);
    }
}

// Books time.
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
    // So that HALF times the longest history fits.
    u32 r = h->run >> 4, s = h->slept >> 4;
    if (r < s)
        return INTERACTIVITY_HALF * r / s;
    if (r > s)
        return INTERACTIVITY_MAX - INTERACTIVITY_HALF * s / r;
    return r ? INTERACTIVITY_HALF : 0;
}
