// The bins of the address-bin profiler: pure, any context, any number of CPUs.
#pragma once

#include <strobe/profile.h>

#include "lib/types.h"

struct bins {
    struct prof_data data; // counters: marked accesses, several writers
    u32 size;              // bytes of a bin
};

// Sets the range [low, high], low <= high, and clears all counters. No bins_add
// may run concurrently.
void bins_init(struct bins *b, u32 low, u32 high);
// Counts `ticks` at `pc`, if that is in the range. False: a counter has reached
// its maximum, where it stays.
bool bins_add(struct bins *b, u32 pc, u32 ticks);
// Copies the bins. No bins_init may run concurrently.
void bins_read(const struct bins *b, struct prof_data *out);
