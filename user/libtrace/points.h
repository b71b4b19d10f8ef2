// The kernel's trace points by name: GROUP/NAME, as of points.def. Only libc is
// used.
#pragma once

#include "reader.h"

#include <stdio.h>

// Of an event, "?" if there is none of this type; LOST and entries, exits and
// calls of functions have names, too.
const char *trace_point_name(uint32_t type);
// Of a point: when it happens, and its table line for a file:
// "sched/wake thread:32 cpu:32 at:32\n".
const char *trace_point_when(uint32_t point);
const char *trace_point_fields(uint32_t point);
struct trace_field {
    const char *name;
    size_t length; // of the name
    uint32_t bits; // 8, 16, 32 or 64
};
// The next field of a line, which begins at its first space; *at goes on to the
// next one. False: there is none.
bool trace_point_field(const char **at, struct trace_field *f);
// The line's part that begins at that space, of any type of events: functions'
// entries, exits and calls, too. NULL: there is no such type.
const char *trace_type_fields(uint32_t type);
// The bytes of all fields of it.
uint32_t trace_fields_bytes(const char *fields);
// Whether it is shown in hexadecimal.
bool trace_field_is_address(const struct trace_field *f);
// Whether `text` is the table of the points that this program knows.
bool trace_points_are(const char *text, size_t size);

// The points that `pattern` names: GROUP/NAME, GROUP/* or GROUP, or * for all,
// as bits. 0: it names none. sched/pmc is in no group.
uint32_t trace_points_named(const char *pattern);
// Prints "Near are: ...": points whose names differ little from `pattern`.
void trace_points_print_near(const char *pattern, FILE *out);
