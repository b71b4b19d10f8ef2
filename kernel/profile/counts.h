// Counting: streams (kernel/stream/stream.h) of what happens to a task and, on
// request, its children. The kernel's own events are differences of what it
// knows of each task anyway; those of the performance counters are counted
// while its threads run.
#pragma once

#include <strobe/kbox.h>

struct task;
struct stream;

// `o` is as the user gave it. 0, -EINVAL (options), -EUSERS (too many),
// -ENOMEM. May sleep, here and below where nothing else is said.
int counts_begin(struct task *task, const struct sprofile_count_options *o,
                 struct stream **out);
void counts_read(struct stream *s, struct sprofile_counts *out);
