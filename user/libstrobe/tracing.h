// A trace of the kernel's calls over a kernel box: <strobe/calls.h>.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <strobe/calls.h>

// Opens a phone of this task, by which INFO, READ, RESET and NAMES are
// answered. Returns it (close() hangs up, and ends a trace that it began), or
// -1.
int tracing_phone(void);
// EBUSY, EINVAL, ESRCH, EPERM, ENOMEM: <strobe/calls.h>.
int tracing_begin(int phone, const struct calls_options *options);
int tracing_pause(int phone, bool pause);
int tracing_end(int phone);
int tracing_info(int phone, struct calls_info *out);
int tracing_reset(int phone);
// Fills in the names of functions.
int tracing_names(int phone, struct calls_name *list, uint32_t count);
// Reads the trace: returns its info, with the records behind it, which the
// caller frees, or NULL. ESHUTDOWN: there is no trace. `reset`: and begins
// anew.
struct calls_info *tracing_read(int phone, bool reset);
// The message for an error of these functions, with the remedy.
const char *tracing_problem(int error);
