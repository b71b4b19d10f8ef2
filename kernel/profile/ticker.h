// A ticker: a periodic callout of one CPU, on a fixed grid or at random
// distances, which reports how many ticks each call accounts for.
#pragma once

#include "kernel/time/callout.h"
#include "lib/counter.h"

struct ticker {
    struct callout timer;
    // Called in interrupt context. `ticks` (>= 1) have come due: late ones
    // merge.
    void (*fn)(struct ticker *t, u32 ticks);
    u32 period;           // ns
    u32 seed;             // of random distances; 0: the distance is `period`
    bool running;         // read by the handler before it sets itself again
    struct counter ticks; // that have come due since boot
};

// Starts it on this CPU, with interrupts or preemption off and `period` and
// `fn` set. The first tick is due at `first`, or a random distance from now.
// Any context but NMI.
void ticker_start(struct ticker *t, u64 first, bool random);
// On return `fn` does not run and will not. Waits for a call that runs.
void ticker_stop(struct ticker *t);
