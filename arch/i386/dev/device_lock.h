// Lock of a device to which the log, the terminal and a panic write.
//
// The log must get through even if another CPU was stopped in the middle of a
// write, or if this CPU panics within one: after a time limit a held lock is
// ignored. At worst the output is then mixed.
#pragma once

#include "arch/i386/cpu/arch_cpu.h"
#include "kernel/sync/spinlock.h"

#define DEVICE_LOCK_SPINS 2000000u
#define DEVICE_LOCK_SPINS_STOPPED 1000u // if the other CPUs have been stopped

struct device_lock_state {
    u32 flags;
    bool taken;
};

static inline struct device_lock_state device_lock(struct spinlock *l)
{
    struct device_lock_state s = { irq_save(), false };
    u32 limit = smp_stopping() ? DEVICE_LOCK_SPINS_STOPPED : DEVICE_LOCK_SPINS;
    preempt_disable();
    for (u32 spins = 0; spins < limit && !spin_held(l); spins++) {
        s.taken = spin_try_lock(l);
        if (s.taken)
            break;
        cpu_relax();
    }
    return s;
}

static inline void device_unlock(struct spinlock *l, struct device_lock_state s)
{
    if (s.taken)
        spin_unlock(l);
    // Interrupts are off: a switch that has become due follows by an interrupt.
    preempt_enable_no_resched();
    irq_restore(s.flags);
}
