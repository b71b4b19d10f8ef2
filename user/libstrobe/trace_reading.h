// Reads a trace of events until it is over: <strobe/trace.h>. One at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "strobe.h"

struct trace_reading {
    struct profile_session *session;
    void *buffer;
    size_t bytes;
    bool resumes; // when the traced task has ended there is more behind a pause
    void (*interrupted)(void *arg); // a signal may have come; may be NULL
    void *arg;
    bool paused; // what follows is the rest
};

// Ends the trace at this signal: it is paused, and what it has until then is
// read. A further SIGINT or SIGTERM during that ends the reading at once.
void trace_reading_end_at(int signal);
// Whether that has come: a write that waits is given up, too.
bool trace_reading_cut_off(void);
// The answer to one read: its bytes; 0: there is nothing now; -1: no more,
// after a message if that is an error.
int trace_reading_next(struct trace_reading *r);
