// Traces of events (strobe/trace.h): a kind of stream.
#pragma once

#include "arch/cpu.h"
#include "kernel/stream/stream.h"
#include "kernel/trace/record.h"

struct trace_cpu {
    struct trace_ring ring;
    bool was_chosen; // the thread that ran before the last switch
};

struct trace_session {
    struct stream stream;
    struct trace_session *next; // in the list of all
    const struct task *except;  // not this one; NULL: no exception
    u32 points, ring_bytes;
    u32 measured;          // `points`, or 0 while it does not measure; marked
    bool calls, calls_run; // it has the trace of calls; which is not paused
    struct trace_cpu cpu[CPU_MAX];
};

// `options`: the caller's struct trace_options. May sleep. 0 or the errors of
// SPROFILE_M_TRACE_BEGIN. The stream is a struct trace_session's.
int trace_session_begin(u32 options, struct waitq *readers,
                        struct stream **out) MUST_CHECK;
// The same with options and functions of the kernel's. `functions`: NULL, or
// kmalloc'ed memory, which becomes the session's, or is freed.
int trace_session_begin_with(const struct trace_options *o, u32 *functions,
                             struct waitq *readers,
                             struct stream **out) MUST_CHECK;
