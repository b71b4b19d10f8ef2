// Chooses one event of a perf.data file, for tools that show a single event.
#pragma once

#include "perf_read.h"

// Returns the number of the event called `name`. With NULL it returns the first
// event, and prints a message if there are others. If no event has that name,
// the program ends with a message.
uint32_t choose_event(const struct perf_events *e, const char *path,
                      const char *name);
