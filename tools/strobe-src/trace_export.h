// Files for other programs, of a file of `trace record`.
#pragma once

#include "user/libtrace/file.h"

// All return NULL, or what is wrong with the trace: what precedes that is
// written.
//
// A trace.dat file, version 6, for trace-cmd and KernelShark. Unless there is
// memory and room in /tmp nothing is written.
const char *trace_dat(FILE *out, struct trace_file *f);
// Protocol buffers for Perfetto: trace_perfetto.c says what is in them. Errors
// of `out` are the caller's to find; lack of memory may end the program.
const char *trace_perfetto(FILE *out, struct trace_file *f);
// The Common Trace Format 1.8, in a new directory: babeltrace2 reads it. If it
// cannot be written, *error is an errno, and what has been is left there.
const char *trace_ctf(const char *directory, struct trace_file *f, int *error);
