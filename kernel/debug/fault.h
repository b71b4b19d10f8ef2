// Faults of the machine on demand (checked kernels only): the kernel argument
// fault=KIND,N[,KIND,N...] makes every Nth event of KIND go wrong, to see what
// becomes of that.
#pragma once

#include "lib/types.h"

enum fault {
    FAULT_IPI,          // ipi: an interrupt for another CPU is not sent
    FAULT_NMI,          // nmi: the same of an NMI
    FAULT_EVENT_LOST,   // event-lost: one of the clock's events is not handled
    FAULT_EVENT_DOUBLE, // event-double: it is handled twice
    FAULT_TIMER_LOST,   // timer-lost: the same of the other timers' interrupts
    FAULT_TIMER_DOUBLE, // timer-double
    FAULTS
};

#ifdef CHECKED

extern u32 fault_every[FAULTS]; // N; 0: never. Constant after fault_start.

void fault_start(void); // once the kernel arguments are parsed
bool fault_count_down(enum fault kind);

// True: this event is to go wrong. Any context.
static ALWAYS_INLINE bool fault_due(enum fault kind)
{
    return unlikely(fault_every[kind]) && fault_count_down(kind);
}

#else

static inline void fault_start(void)
{
}
static ALWAYS_INLINE bool fault_due(enum fault kind UNUSED)
{
    return false;
}

#endif
