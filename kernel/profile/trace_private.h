// What a trace of events consists of: for trace_session.c, and tests.
#pragma once

#include "kernel/profile/trace_session.h"
#include "kernel/stream/stream.h"
#include "kernel/trace/emit.h"

struct trace_session {
    struct stream stream;
    u32 points, ring_bytes, event_cycles; // trace_info
    bool calls, calls_run; // it has the trace of calls; which is not paused
    bool pmc;              // it has the counters of sched/pmc
    u32 flight_ms;         // trace_options
    bool readable;         // a flight's: once it has stopped
    u64 since;             // trace_info
    struct trace_target target; // its points: 0 while it does not measure
};

// trace_session_begin with options and functions of the kernel's. `functions`:
// NULL, or kmalloc'ed memory, which becomes the session's, or is freed. The
// stream is a struct trace_session's.
int trace_session_begin_with(const struct trace_options *o, u32 *functions,
                             struct waitq *readers,
                             struct stream **out) MUST_CHECK;
