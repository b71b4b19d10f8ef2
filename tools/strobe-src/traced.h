// Traces of the kernel's calls: files of cprofile -o (docs/trace.md).
//
// Their paths become chains of a profile, as those of samples, with the calls
// as samples and own time in ns as period. What needs all numbers of a path is
// here.
#pragma once

#include "export.h"
#include "names.h"

#include "user/libprofile/call_tables.h"
#include "user/libprofile/calls_file.h"

struct traced {
    struct calls_file file;  // its records are a copy
    struct call_paths paths; // of all CPUs
    struct calls_arc *arcs;  // instead of paths
    uint32_t arc_count;
    struct names names;
    struct call_printing printing;
};

// Reads a call file into a profile whose samples are empty. An error ends the
// program with a message.
void traced_read(struct profile *p, const void *bytes, size_t size);
void traced_free(struct traced *t);
// The lines of the header after "Profile ...".
void traced_header(FILE *out, const struct traced *t);
// The commands, of a profile that has a trace. `filter` may select a CPU.
void traced_report(struct profile *p, const struct view_filter *filter,
                   uint32_t rows);
void traced_tree(struct profile *p, const struct view_filter *filter,
                 double min);
// Whether a file is a call file, or cannot be read.
bool traced_is(const char *path);
int traced_diff(const char *before, const char *after, const struct common *c,
                uint32_t rows);
void traced_speedscope(struct export *e);
void traced_callgrind(struct export *e);

// The paths that pass the filter; freed by the caller. Ends the program if the
// file has only arcs.
struct call_paths traced_paths(const struct profile *p,
                               const struct view_filter *filter);
