// Student's distribution from the regularised incomplete beta function. It is
// computed by its continued fraction (DLMF 8.17.22) with Lentz's method (W. J.
// Lentz, Applied Optics 15, 1976) where that converges fast, and elsewhere by
// the symmetry 8.17.4.
#include "welch.h"

#include <math.h>
#include <stddef.h>

#define STEPS_MAX 500
#define CLOSE 1e-15 // convergence limit, about the last digit
#define TINY 1e-300 // replaces 0 as a divisor

static double not_zero(double x)
{
    return fabs(x) < TINY ? TINY : x;
}

// The n-th partial numerator.
static double numerator(int n, double a, double b, double x)
{
    int m = n / 2;
    if (n % 2 == 0)
        return m * (b - m) * x / ((a + n - 1) * (a + n));
    return -(a + m) * (a + b + m) * x / ((a + n - 1) * (a + n));
}

static double fraction(double a, double b, double x)
{
    double c = 1, d = 0, value = 1;
    for (int n = 1; n <= STEPS_MAX; n++) {
        double part = numerator(n, a, b, x);
        d = 1 / not_zero(1 + part * d);
        c = not_zero(1 + part / c);
        value *= c * d;
        if (fabs(c * d - 1) < CLOSE)
            break;
    }
    return 1 / value;
}

static double beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x >= 1;
    if (x > (a + 1) / (a + b + 2))
        return 1 - beta(b, a, 1 - x);
    double front =
        exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return front / a * fraction(a, b, x);
}

double student_two_sided(double t, double freedom)
{
    return beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

struct sample_of sample_of(const double *values, uint32_t count)
{
    struct sample_of s = { .count = count };
    double squares = 0;
    for (uint32_t i = 0; i < count; i++)
        s.mean += values[i] / count;
    for (uint32_t i = 0; i < count; i++)
        squares += (values[i] - s.mean) * (values[i] - s.mean);
    if (count > 1)
        s.deviation = sqrt(squares / (count - 1));
    return s;
}

struct welch welch_test(const struct sample_of *a, const struct sample_of *b)
{
    struct welch w = { .t = NAN, .freedom = NAN, .p = NAN };
    if (a->count < 2 || b->count < 2)
        return w;
    double va = a->deviation * a->deviation / a->count;
    double vb = b->deviation * b->deviation / b->count;
    if (va + vb <= 0)
        return w;
    w.t = (b->mean - a->mean) / sqrt(va + vb);
    // The Welch-Satterthwaite equation.
    w.freedom = (va + vb) * (va + vb) /
                (va * va / (a->count - 1) + vb * vb / (b->count - 1));
    w.p = student_two_sided(w.t, w.freedom);
    return w;
}

const char *welch_mark(double p)
{
    static const struct {
        double below;
        const char *mark;
    } marks[] = { { 0.001, "***" }, { 0.01, "**" }, { 0.05, "*" } };
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (p < marks[i].below) // false for NAN
            return marks[i].mark;
    }
    return "";
}
