// Samples sorted by thread, for formats with a track for each thread.
#pragma once

#include "export.h"

// The samples that pass the filter, sorted by event, then by thread (after the
// threads, idle samples by CPU), then by time. The caller frees the list. Lack
// of memory ends the program.
struct timed_sample *samples_by_thread(const struct export *e, size_t *count);
// Whether both samples have the same event and the same thread or idle CPU.
bool same_thread(const struct timed_sample *x, const struct timed_sample *y);

static inline bool sample_is_idle(const struct timed_sample *s)
{
    return s->mode == MODE_IDLE;
}
