// The load averages, kept by the kernel thread kload.
#pragma once

#include "lib/load_average.h"

struct load {
    u32 average[LOAD_AVERAGES]; // over 1, 5, 15 minutes
    u32 runnable;               // threads at the last update, without kload
    u32 updates;                // since load_start
};

void load_start(void);
// Copies the values of one update. Any context but interrupts.
void load_read(struct load *out);

// A load average in hundredths, rounded: the form in which it is shown.
static inline u32 load_hundredths(u32 average)
{
    return ((u64)average * 100 + 0x8000) >> 16;
}
