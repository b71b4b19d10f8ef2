// Welch's t test: do two samples of measurements, whose deviations may differ,
// have the same mean?
#pragma once

#include <stdint.h>

struct sample_of {
    uint32_t count;
    double mean, deviation; // sample deviation (count - 1); 0 for one value
};
struct sample_of sample_of(const double *values, uint32_t count);

struct welch {
    double t, freedom;
    double p; // the p-value; NAN: cannot be computed
};
// Requires at least two values a side, and some deviation.
struct welch welch_test(const struct sample_of *a, const struct sample_of *b);

// "***", "**", "*" for p below .001, .01, .05; else "".
const char *welch_mark(double p);

// Returns the two-sided p-value of `t` by Student's distribution: the
// probability that |t| is at least as large.
double student_two_sided(double t, double freedom);
