// Samples in the order of threads, for formats with a track for each.
#pragma once

#include "export.h"

// The samples that the filter wants, to be freed: by event; those of a thread
// together, by time; behind the threads each CPU's idle samples. No memory ends
// the program.
struct timed_sample *samples_by_thread(const struct export *e, size_t *count);
// Whether two are of one event, and of one thread or one idle CPU.
bool same_thread(const struct timed_sample *x, const struct timed_sample *y);

static inline bool sample_is_idle(const struct timed_sample *s)
{
    return s->mode == MODE_IDLE;
}
