// The header of all reports, line by line, for formats that can hold it.
#pragma once

#include "strobe.h"

// Calls `put` with each line, "Name: value", except the first, which names the
// command; a value may be continued in further lines. Lack of memory ends the
// program.
void header_lines(const struct profile *p, const struct perf_file *f,
                  const struct view *v,
                  void (*put)(void *arg, const char *name, size_t name_size,
                              const char *value),
                  void *arg);
