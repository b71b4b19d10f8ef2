// What the parts of kernel/stream share.
#pragma once

#include "kernel/stream/stream.h"

// targets.c, under tasks_lock, before `s` is in its slot: makes its task its
// target, and what that has started, if it wants children. It has ended if
// nothing of the task runs.
void targets_begin(struct stream *s);
// No task is a target of `s` any more.
void targets_end(struct stream *s);

// rings.c: the ring of CPU `i`, or, at cpu_count, that of the events.
struct ring *stream_ring(struct stream *s, u32 i);
