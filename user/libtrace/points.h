// The kernel's trace points by name: GROUP/NAME, as of points.def. Only libc is
// used.
#pragma once

#include "reader.h"

#include <stdio.h>

// Of an event, "?" if there is none of this type; LOST and entries and exits of
// functions have names, too.
const char *trace_point_name(uint32_t type);
// Of a point: when it happens, and its table line for a file:
// "sched/wake thread:32 cpu:32 at:32\n".
const char *trace_point_when(uint32_t point);
const char *trace_point_fields(uint32_t point);
// Whether `text` is the table of the points that this program knows.
bool trace_points_are(const char *text, size_t size);

// The points that `pattern` names: GROUP/NAME, GROUP/* or GROUP, or * for all,
// as bits. 0: it names none.
uint32_t trace_points_named(const char *pattern);
// Prints "Near are: ...": points whose names differ little from `pattern`.
void trace_points_print_near(const char *pattern, FILE *out);
