// Where the next record of a trace goes on one CPU: what the stubs of call
// tracing (arch/i386/text/stubs.S) know of a struct trace_ring, whose first
// part this is (kernel/trace/record.h).
#pragma once

#include "lib/types.h"

struct trace_place {
    u32 at;    // address of the next record
    u32 limit; // end of its page; 0: no record fits
    u32 epoch; // of the last TIME record: the time without its low bits
};

struct trace_ring;
// Called when there is no room up to `limit` for a record of `bytes`, or the
// epoch is another one. False: the record is lost, which is counted. Any
// context on the ring's CPU, with interrupts off; NMIs too.
UPCALL bool trace_ring_make_room(struct trace_ring *r, u32 bytes);
