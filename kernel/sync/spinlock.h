// Spinlocks. A lock records its holder and where it was taken.
//
// spin_lock disables preemption. A lock that is also taken in interrupt context
// must be taken with spin_lock_irq (saves and disables interrupts) everywhere.
// A holder must not sleep or access user memory.
#pragma once

#include "arch/cpu.h"
#include "kernel/sync/lockdep.h"

// Values of `locked` (test-and-set): 0 while the lock is free.
#define SPIN_LOCKED 1u
#define SPIN_NEW 2u // free and never taken: it has no class yet

struct spinlock {
    u32 locked;
    struct cpu *holder; // see spinlock.c
    u32 caller;         // return address of the taker
    u32 class;          // lock_class.h
    u32 since;          // TSC, when this hold is measured
    const char *name;
};

#define SPINLOCK_INIT(text)                 \
    {                                       \
        .locked = SPIN_NEW, .name = (text), \
    }

void spin_init(struct spinlock *l, const char *name);
void spin_lock(struct spinlock *l);
// Takes a lock while another lock of the same name is held. The caller ensures
// an order between them.
void spin_lock_nested(struct spinlock *l);
void spin_unlock(struct spinlock *l);
bool spin_try_lock(struct spinlock *l);
u32 spin_lock_irq(struct spinlock *l);
void spin_unlock_irq(struct spinlock *l, u32 flags);
bool spin_held(const struct spinlock *l); // by this CPU

// A precondition: this CPU holds the lock. Checked (panic) by kernels with
// LOCKDEP only.
#ifdef LOCKDEP
void spin_assert_held(const struct spinlock *l);
#else
static inline void spin_assert_held(const struct spinlock *l UNUSED)
{
}
#endif
