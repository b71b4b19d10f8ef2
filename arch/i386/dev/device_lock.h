// A device that the log, the terminal and a panic write to.
//
// The log must come through when another CPU was stopped in the middle of a
// write, or when this CPU panics within one: a lock that is not given back
// within a while is passed by. Text may then be mixed; that is all.
#pragma once

#include "arch/i386/cpu/arch_cpu.h"
#include "kernel/sync/spinlock.h"

#define DEVICE_LOCK_SPINS 2000000u
#define DEVICE_LOCK_SPINS_STOPPED 1000u // the other CPUs have been stopped

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
    // Interrupts are off: what became due meanwhile comes as an interrupt.
    preempt_enable_no_resched();
    irq_restore(s.flags);
}
