#include "timeline.h"

#define BINS_MAX 240u
#define SAMPLES_A_BIN 4u // of one CPU, as a rule

struct timeline timeline_make(const struct timed_sample *list, size_t count,
                              uint32_t cpus)
{
    struct timeline t = { .bins = 1 };

    if (count == 0)
        return t;
    t.first = t.last = list[0].time;
    for (size_t i = 1; i < count; i++) {
        t.first = list[i].time < t.first ? list[i].time : t.first;
        t.last = list[i].time > t.last ? list[i].time : t.last;
    }
    uint64_t bins = count / (cpus > 0 ? cpus : 1) / SAMPLES_A_BIN;
    if (bins > BINS_MAX)
        bins = BINS_MAX;
    if (bins > 1)
        t.bins = (uint32_t)bins;
    return t;
}

uint32_t timeline_bin(const struct timeline *t, uint64_t time)
{
    if (time <= t->first || t->last <= t->first)
        return 0;
    if (time >= t->last)
        return t->bins - 1;
    double part = (double)(time - t->first) / (double)(t->last - t->first);
    uint32_t bin = (uint32_t)(part * t->bins);
    return bin < t->bins ? bin : t->bins - 1;
}

double timeline_seconds(const struct timeline *t)
{
    return (double)(t->last - t->first) / 1e9;
}
