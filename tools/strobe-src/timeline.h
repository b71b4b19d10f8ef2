// Divides the time of a profile into bins of equal width.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "user/libprofile/perf_read.h"

struct timeline {
    uint32_t bins;         // at least 1
    uint64_t first, width; // ns: begin of the first bin, width of each
};

// Chooses the number of bins by the samples of an average row (an event on a
// CPU), up to a number that a screen can show. If samples are taken with a
// fixed period (ns; 0: none) the width is a multiple of it. Else some bins
// would have a sample more than others under the same load.
struct timeline timeline_make(const struct timed_sample *list, size_t count,
                              uint32_t rows, uint64_t period);
uint32_t timeline_bin(const struct timeline *t, uint64_t time);
double timeline_seconds(const struct timeline *t);
