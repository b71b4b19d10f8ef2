// Spinlocks. They know their holder and where it took them.
//
// spin_lock disables preemption; a lock that is also taken in interrupt context
// is taken with spin_lock_irq (saves and disables interrupts), everywhere. A
// holder must not sleep, nor touch user memory.
#pragma once

#include "arch/cpu.h"

struct spinlock {
    u32 locked; // ticket-free test-and-set; 1 while held
    struct cpu *holder;
    u32 caller; // return address of the taker
    const char *name;
};

#define SPINLOCK_INIT(text) \
    {                       \
        .name = (text)      \
    }

void spin_init(struct spinlock *l, const char *name);
void spin_lock(struct spinlock *l);
// With another lock of the same name held, in an order of the caller's own.
void spin_lock_nested(struct spinlock *l);
void spin_unlock(struct spinlock *l);
bool spin_try_lock(struct spinlock *l);
u32 spin_lock_irq(struct spinlock *l);
void spin_unlock_irq(struct spinlock *l, u32 flags);
bool spin_held(const struct spinlock *l); // by this CPU
