#include "multiplexed.h"

#include <math.h>

#define NONE_AT_MOST 3.0 // events of which none was seen, 95 % sure

double multiplexed_estimate(const struct sprofile_count *c)
{
    return (double)c->value * c->enabled / c->running;
}

// Student's distribution: 95 % are within this many standard errors.
static double quantile(uint32_t freedom)
{
    static const double of[SPROFILE_PARTS] = {
        [1] = 12.71, [2] = 4.30,  [3] = 3.18,  [4] = 2.78,
        [5] = 2.57,  [6] = 2.45,  [7] = 2.36,  [8] = 2.31,
        [9] = 2.26,  [10] = 2.23, [11] = 2.20, [12] = 2.18,
        [13] = 2.16, [14] = 2.14, [15] = 2.13, [16] = 2.12,
    };
    return of[freedom];
}

double multiplexed_margin(const struct sprofile_count *c)
{
    double rate = (double)c->value / c->running, squares = 0;
    double scale = (double)c->enabled / c->running;
    uint32_t parts = 0;

    for (uint32_t i = 0; i < SPROFILE_PARTS; i++) {
        const struct sprofile_part *p = &c->part[i];
        double off = p->value - rate * p->running;
        squares += off * off;
        parts += p->running > 0;
    }
    if (parts < 2)
        return NAN;
    if (c->value == 0)
        return NONE_AT_MOST * scale;
    // What was counted has no error: only the rest of the time is estimated.
    double error = sqrt(squares * parts / (parts - 1) * (1 - 1 / scale));
    return quantile(parts - 1) * scale * error;
}
