// The streams whose events one CPU counts: at context switches groups of events
// are loaded and unloaded (arch/pmu.h).
//
// Pure: the same C runs in the kernel and on models of counters (tests/host).
// Called on its CPU with interrupts off.
#pragma once

#include "lib/types.h"

struct counted_cpu {
    u32 in; // mask of the streams whose events this CPU counts now
};

struct counted_ops {
    void (*in)(u32 session);
    void (*out)(u32 session);
};

// Switches to a thread that the streams in the mask `wanted` count.
static inline void counted_switch(struct counted_cpu *c, u32 wanted,
                                  const struct counted_ops *ops)
{
    // Unload first: this frees counters for the groups that are loaded.
    for (u32 left = c->in & ~wanted; left; left &= left - 1)
        ops->out((u32)__builtin_ctz(left));
    for (u32 come = wanted & ~c->in; come; come &= come - 1)
        ops->in((u32)__builtin_ctz(come));
    c->in = wanted;
}
