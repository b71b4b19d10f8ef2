// The time of a profile in bins, and its samples in their order: by bin, then
// by where and whose they are.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "user/libprofile/perf_read.h"

struct timeline {
    uint32_t bins;         // at least 1
    uint64_t first, width; // ns: where they begin, and what each has
};

// As many bins as the samples of one row fill (a CPU, of one event), up to a
// number that a screen can show. With samples at a `period` (ns; 0: at none) a
// bin has a whole number of them: else some bins would have one more than
// others, as if more were done.
struct timeline timeline_make(const struct timed_sample *list, size_t count,
                              uint32_t rows, uint64_t period);
uint32_t timeline_bin(const struct timeline *t, uint64_t time);
double timeline_seconds(const struct timeline *t);
