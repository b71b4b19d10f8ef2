#include "timeline.h"

#define BINS_MAX 240u
#define SAMPLES_A_BIN 4u // of one row, on average

struct timeline timeline_make(const struct timed_sample *list, size_t count,
                              uint32_t rows, uint64_t period)
{
    struct timeline t = { .bins = 1, .width = 1 };
    uint64_t last;

    if (count == 0)
        return t;
    t.first = last = list[0].time;
    for (size_t i = 1; i < count; i++) {
        t.first = list[i].time < t.first ? list[i].time : t.first;
        last = list[i].time > last ? list[i].time : last;
    }
    uint64_t bins = count / (rows > 0 ? rows : 1) / SAMPLES_A_BIN;
    if (bins > BINS_MAX)
        bins = BINS_MAX;
    // Any times are allowed: nothing here overflows.
    t.width = (last - t.first) / (bins > 0 ? bins : 1);
    t.width += t.width < UINT64_MAX;
    if (bins > 1 && period > 0 && period < (last - t.first) / 2) {
        t.width = (t.width + period - 1) / period * period;
        // Ticks fall into the middle of a period, so that jitter does not move
        // one into another bin.
        t.first -= t.first < period / 2 ? t.first : period / 2;
    }
    t.bins = (uint32_t)((last - t.first) / t.width) + 1;
    return t;
}

uint32_t timeline_bin(const struct timeline *t, uint64_t time)
{
    if (time <= t->first)
        return 0;
    uint64_t bin = (time - t->first) / t->width;
    return bin < t->bins ? (uint32_t)bin : t->bins - 1;
}

double timeline_seconds(const struct timeline *t)
{
    return (double)t->bins * t->width / 1e9;
}
