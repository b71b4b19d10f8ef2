// Reads a trace of events until it is over: <strobe/trace.h>.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "strobe.h"

struct trace_reading {
    struct profile_session *session;
    void *buffer;
    size_t bytes;
    volatile sig_atomic_t *over; // set by signals: pauses the trace
    bool resumes; // when the traced task has ended there is more behind a pause
    void (*interrupted)(void *arg); // a signal may have come; may be NULL
    void *arg;
    bool paused; // what follows is the rest
};

// The answer to one read: its bytes; 0: there is nothing now; -1: no more,
// after a message if that is an error.
int trace_reading_next(struct trace_reading *r);
