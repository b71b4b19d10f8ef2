// The time of a profile in bins, and its samples in their order: by bin, then
// by where and whose they are.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "user/libprofile/perf_read.h"

struct timeline {
    uint32_t bins;        // at least 1
    uint64_t first, last; // ns: what the bins divide evenly
};

// As many bins as the samples of one CPU fill, up to a number that a screen can
// show.
struct timeline timeline_make(const struct timed_sample *list, size_t count,
                              uint32_t cpus);
uint32_t timeline_bin(const struct timeline *t, uint64_t time);
double timeline_seconds(const struct timeline *t);
