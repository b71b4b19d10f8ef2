// A lock below the spinlocks, for data that the checking and reporting of
// spinlocks use (lockdep's graph, the log). It is itself neither checked nor
// counted. Interrupts are off while it is held.
#pragma once

#include "arch/cpu.h"

struct raw_lock {
    u32 taken; // atomic
};

// Returns the state of the interrupts, for raw_unlock.
static inline u32 raw_lock(struct raw_lock *l)
{
    u32 flags = irq_save();
    while (__atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE))
        cpu_relax();
    return flags;
}

static inline void raw_unlock(struct raw_lock *l, u32 flags)
{
    __atomic_store_n(&l->taken, 0, __ATOMIC_RELEASE);
    irq_restore(flags);
}
