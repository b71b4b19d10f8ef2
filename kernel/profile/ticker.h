// A ticker: a callout of one CPU that comes again and again, on a fixed grid or
// at random distances, and says how many ticks each time stands for.
#pragma once

#include "kernel/time/callout.h"

struct ticker {
    struct callout timer;
    // In interrupt context. `ticks` periods have passed (>= 1: the others came
    // too late), `ns` in all.
    void (*fn)(struct ticker *t, u32 ticks, u64 ns);
    u32 period;   // ns
    u32 distance; // ns between the tick that is awaited and the one before
    u32 seed;     // of random distances; 0: they are even
    bool running; // read by the handler before it sets itself again
};

// On this CPU: interrupts or preemption off. `period` and `fn` are set; the
// first tick comes at `first`, or a random distance from now. Any context but
// NMI.
void ticker_start(struct ticker *t, u64 first, bool random);
// After it `fn` does not run and will not. Waits for one that runs.
void ticker_stop(struct ticker *t);
