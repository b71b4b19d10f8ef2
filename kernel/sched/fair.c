#include "kernel/sched/fair.h"

#include "lib/math64.h"

#define NICE_MIN (-20)

// TSC cycles: the most that times 1024 fits into 64 bits; 26 days at 4 GHz.
#define TIME_MAX (1ull << 53)

// round(1024 / 1.25^nice)
static const u32 weights[] = {
    88818, 71054, 56843, 45475, 36380, 29104, 23283, 18626, 14901, 11921,
    9537,  7629,  6104,  4883,  3906,  3125,  2500,  2000,  1600,  1280,
    1024,  819,   655,   524,   419,   336,   268,   215,   172,   137,
    110,   88,    70,    56,    45,    36,    29,    23,    18,    15,
};

u32 fair_weight(int nice)
{
    return weights[nice - NICE_MIN];
}

u64 fair_scale(u64 time, int nice)
{
    u32 rest;
    if ((s64)time < 0)
        return 0;
    return divide_u64(MIN(time, TIME_MAX) * FAIR_WEIGHT_0, fair_weight(nice),
                      &rest);
}
