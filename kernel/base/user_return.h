// On the way to user mode: signals are delivered, and a switch that is due is
// made, with interrupts on; then both are looked for again, with interrupts
// off.
#pragma once

#include "kernel/base/thread.h"

// A switch and signals, whichever is due. Interrupts on.
UPCALL void user_return_work(struct trapframe *tf);

#ifdef LOCKDEP
// It returns to user mode: no mutex, no spinlock, preemption is on. Interrupts
// off.
UPCALL void lockdep_user_mode(void);
#else
static inline void lockdep_user_mode(void)
{
}
#endif

// Interrupts are off at the end.
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
