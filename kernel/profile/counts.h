// Counting streams (kernel/stream/stream.h): they count events of a task and,
// on request, of its children. Software events are differences of statistics
// that the kernel keeps of each task anyway; hardware events are counted while
// the task's threads run.
#pragma once

#include <strobe/kbox.h>

struct task;
struct stream;

// `o` is unchecked user input. 0, -EINVAL (options), -EUSERS (too many
// streams), -ENOMEM. Both functions may sleep.
int counts_begin(struct task *task, const struct sprofile_count_options *o,
                 struct stream **out);
void counts_read(struct stream *s, struct sprofile_counts *out);
