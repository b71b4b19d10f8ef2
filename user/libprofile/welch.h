// Welch's t test: do two samples of measurements have the same mean, though
// their deviations may differ?
#pragma once

#include <stdint.h>

struct sample_of {
    uint32_t count;
    double mean, deviation; // the sample's, by count - 1; 0 of one value
};
struct sample_of sample_of(const double *values, uint32_t count);

struct welch {
    double t, freedom;
    double p; // of a difference like this by chance; NAN: it cannot be told
};
// It can be told of two values a side at least, if any of them vary.
struct welch welch_test(const struct sample_of *a, const struct sample_of *b);

// "***", "**", "*" for p below .001, .01, .05; else "".
const char *welch_mark(double p);

// How probable a |t| at least as large is, by Student's distribution.
double student_two_sided(double t, double freedom);
