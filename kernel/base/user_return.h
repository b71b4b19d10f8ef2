// On the way to user mode, signals are delivered and a pending reschedule is
// made with interrupts on; then both are checked again with interrupts off.
#pragma once

#include "kernel/base/thread.h"

// Reschedules and delivers signals, as pending. Interrupts on.
UPCALL void user_return_work(struct trapframe *tf);

#ifdef LOCKDEP
// Checks at a return to user mode: no mutex or spinlock is held, preemption is
// enabled. Interrupts off.
UPCALL void lockdep_user_mode(void);
#else
static inline void lockdep_user_mode(void)
{
}
#endif

// Returns with interrupts off.
static ALWAYS_INLINE void user_return_prepare(struct trapframe *tf)
{
    irq_disable();
    while (unlikely(byte_is_set(&current_base()->signal_pending) ||
                    this_cpu_is_set(need_resched))) {
        irq_enable();
        user_return_work(tf);
        irq_disable();
    }
    lockdep_user_mode();
}
