// Whose events one CPU counts: as threads come and go, groups of events go in
// and out (arch/pmu.h).
//
// Pure: the same C runs in the kernel and on models of counters (tests/host).
// Interrupts off, on its CPU.
#pragma once

#include "lib/types.h"

struct counted_cpu {
    u32 in; // sessions whose events this CPU counts now
};

struct counted_ops {
    void (*in)(u32 session);
    void (*out)(u32 session);
};

// From now on a thread runs that the sessions in the mask `wanted` count.
static inline void counted_switch(struct counted_cpu *c, u32 wanted,
                                  const struct counted_ops *ops)
{
    // Out first: they leave their counters to those that come.
    for (u32 left = c->in & ~wanted; left; left &= left - 1)
        ops->out((u32)__builtin_ctz(left));
    for (u32 come = wanted & ~c->in; come; come &= come - 1)
        ops->in((u32)__builtin_ctz(come));
    c->in = wanted;
}
