// Shared by the parts of kernel/stream.
#pragma once

#include "kernel/stream/stream.h"

// targets.c, under tasks_lock, before `s` is in its slot: marks its task as a
// target and, if `s` wants children, the task's descendants. `s` has ended if
// no thread of the task runs.
void targets_begin(struct stream *s);
// No more records of tasks for the reader of `s`: it measures nothing any more,
// and reads what is left until there is nothing. Tasks that are still created
// would make that endless.
void targets_silence(struct stream *s);
// Unmarks all targets of `s`.
void targets_end(struct stream *s);

// rings.c: the ring of CPU `i`; for `i` == cpu_count, the event ring.
struct ring *stream_ring(struct stream *s, u32 i);
