// Where the next record of a trace goes on one CPU: what the stubs of call
// tracing (arch/i386/text/stubs.S) know of a struct trace_ring, whose first
// part this is (kernel/trace/record.h).
#pragma once

#include "lib/types.h"
#include <strobe/trace.h>

struct trace_place {
    u32 at;    // address of the next record
    u32 limit; // end of its page; 0: no record fits
    // Of the last TIME record: the time without its low bits. An earlier one:
    // the next record needs a TIME record before it.
    u32 epoch;
    u32 count; // of records, but for those of traced functions
};

// The TSC: its low word, and the epoch. In halves, because GCC would put a u64,
// of which some bits are used here and some there, into memory.
static ALWAYS_INLINE u32 trace_time(u32 *low)
{
    u32 epoch, high;
    __asm__ volatile("rdtsc" : "=a"(*low), "=d"(high));
    epoch = *low;
    __asm__("shrdl %2, %1, %0"
            : "+r"(epoch)
            : "r"(high), "i"(TRACE_TIME_BITS)
            : "cc");
    return epoch;
}

struct trace_ring;
// Called when there is no room up to `limit` for a record of `bytes`, or the
// epoch is another one. False: the record is lost, which is counted. Any
// context on the ring's CPU, with interrupts off; NMIs too.
UPCALL bool trace_ring_make_room(struct trace_ring *r, u32 bytes);
