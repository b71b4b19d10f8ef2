// The header of all reports, line by line, for formats with a place for it.
#pragma once

#include "strobe.h"

// Calls `put` with each line but the first, which has what was run: "Name:
// value". No memory ends the program.
void header_lines(const struct profile *p, const struct perf_file *f,
                  const struct view *v,
                  void (*put)(void *arg, const char *name, size_t name_size,
                              const char *value),
                  void *arg);
