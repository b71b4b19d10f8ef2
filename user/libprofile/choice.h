// Which event of a perf.data file a tool takes that has room for one.
#pragma once

#include "perf_read.h"

// The number of the event called `name`, or (NULL) of the first, which is said
// if there are others. That there is none such ends the program.
uint32_t choose_event(const struct perf_events *e, const char *path,
                      const char *name);
