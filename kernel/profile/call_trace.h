// The trace of calls that a tool controls (strobe/calls.h): which functions and
// tasks, memory, and copying to the tool. There is one trace at a time.
//
// All functions: thread context, may sleep. Addresses are the caller's.
#pragma once

#include "lib/types.h"

// 0, -EFAULT, -EINVAL, -EBUSY, -ESRCH or -ENOMEM: see SPROFILE_M_CALLS_BEGIN.
int call_trace_begin(u32 options) MUST_CHECK;
// The same with a list of functions of the kernel's, ascending, which can be
// patched: kmalloc'ed memory, which becomes the trace's, or is freed.
struct calls_options;
int call_trace_begin_with(const struct calls_options *o,
                          u32 *functions) MUST_CHECK;
// Copies a list of functions from the caller's memory, or with CALLS_ALL all,
// whose number *count becomes: 0, -EFAULT, -EINVAL (too many, none, or not as
// above) or -ENOMEM. *out is kmalloc'ed.
int call_trace_functions(u32 list, u32 *count, u32 **out) MUST_CHECK;
// Begins one that records calls in the rings of the CPUs, which must exist
// until it has ended. `o`: CALLS_EVENTS or CALLS_ENTRIES
// (kernel/trace/calls.h), task, depth and the number of functions.
struct trace_ring;
int call_trace_begin_events(const struct calls_options *o, u32 *functions,
                            struct trace_ring *const *rings) MUST_CHECK;
// Of who has begun it:
void call_trace_end(void);
void call_trace_pause(bool pause);
// There is a trace: what struct trace_info says of it.
void call_trace_losses(u64 *too_deep, u64 *no_frames);
// 0 or -EFAULT
int call_trace_info(u32 info);
// Bytes stored, -ESHUTDOWN (there is none), -ENOSPC, -EFAULT or -ENOMEM.
int call_trace_read(u32 buffer, u32 size, bool reset);
int call_trace_reset(void);                // 0 or -ESHUTDOWN
int call_trace_names(u32 list, u32 count); // 0, -EINVAL or -EFAULT

// What a traced call costs outside of the two readings of the TSC, in cycles:
// in the caller's own time and in the function's. Traces calls for a moment;
// there must be no trace. 0 or -ENOMEM.
int call_trace_measure(u32 *caller, u32 *own);
