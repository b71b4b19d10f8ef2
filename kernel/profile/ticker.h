// A ticker: a callout of one CPU that comes again and again, on a fixed grid or
// at random distances, and says how many ticks each time stands for.
#pragma once

#include "kernel/time/callout.h"
#include "lib/counter.h"

struct ticker {
    struct callout timer;
    // In interrupt context. `ticks` have come due (>= 1: the others came too
    // late).
    void (*fn)(struct ticker *t, u32 ticks);
    u32 period;           // ns
    u32 seed;             // of random distances; 0: they are even
    bool running;         // read by the handler before it sets itself again
    struct counter ticks; // that have come due, since ever
};

// On this CPU: interrupts or preemption off. `period` and `fn` are set; the
// first tick comes at `first`, or a random distance from now. Any context but
// NMI.
void ticker_start(struct ticker *t, u64 first, bool random);
// After it `fn` does not run and will not. Waits for one that runs.
void ticker_stop(struct ticker *t);
