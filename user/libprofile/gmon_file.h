// Writes gmon.out for gprof (GNU's layout: glibc, gmon/sys/gmon_out.h): a
// histogram of addresses, and arcs from a place that calls to a function.
#pragma once

#include <stdint.h>
#include <stdio.h>

struct gmon_histogram {
    uint32_t low, bins, bin_bytes; // from `low` on
    const uint64_t *counts;        // of each bin
    uint32_t rate;                 // samples a second; 0: the unit is samples
};

void gmon_put_head(FILE *out);
// A bin of the file has 16 bits: what is more is in further histograms of the
// same addresses, which gprof adds.
void gmon_put_histogram(FILE *out, const struct gmon_histogram *h);
// The same with an arc's 32 bits.
void gmon_put_arc(FILE *out, uint32_t from, uint32_t self, uint64_t count);
