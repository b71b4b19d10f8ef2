// What a trace of events consists of: for trace_session.c, and tests.
#pragma once

#include "arch/cpu.h"
#include "kernel/profile/trace_session.h"
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

// trace_session_begin with options and functions of the kernel's. `functions`:
// NULL, or kmalloc'ed memory, which becomes the session's, or is freed. The
// stream is a struct trace_session's.
int trace_session_begin_with(const struct trace_options *o, u32 *functions,
                             struct waitq *readers,
                             struct stream **out) MUST_CHECK;
