// Which events of a trace belong to one call between tasks. In the kernel's
// events that is the address of the call, which another one may have later;
// here each call has a number of its own.
#pragma once

#include "user/libtrace/reader.h"

#include <stddef.h>

// Zeroed before the first event.
struct trace_flows {
    struct trace_flow {
        uint32_t address;
        uint64_t number; // of the call that has it; 0: none
    } * all;             // as many as calls were under way at a time
    size_t count;
    uint64_t calls; // numbers so far
};

// The number of the event's call, from 1; *ends: it is its last one. 0: it has
// none, or the call's begin is not in the trace. Lack of memory ends the
// program.
uint64_t trace_flow(struct trace_flows *f, const struct trace_event *e,
                    bool *ends);
void trace_flows_free(struct trace_flows *f);
