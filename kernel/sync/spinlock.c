#include "kernel/sync/spinlock.h"

#include "kernel/init/log.h"
#include "kernel/sync/lockdep.h"

// A lock that nobody gives back within this many spins is a bug; under -icount
// each PAUSE hands the CPU on, so the count, not the time, is the measure.
#define SPIN_LIMIT 400000000u

void spin_init(struct spinlock *l, const char *name)
{
    *l = (struct spinlock){ .name = name };
}

bool spin_held(const struct spinlock *l)
{
    return READ_ONCE(l->locked) && READ_ONCE(l->holder) == this_cpu();
}

// `holder` and `caller` are written by whoever holds the lock. One who does not
// may read them at any time: `holder` is this CPU only if this CPU set it, and
// `caller` goes into a message.
static NOINLINE void spin_wait(struct spinlock *l, u32 caller)
{
    if (READ_ONCE(l->holder) == this_cpu())
        panic("spinlock %s: CPU %u takes it again at %08x, took it at %08x",
              l->name, this_cpu()->id, caller, READ_ONCE(l->caller));
    u32 spins = 0;
    while (READ_ONCE(l->locked)) {
        cpu_relax();
        if (++spins == SPIN_LIMIT)
            panic("spinlock %s: stuck; wanted at %08x, held since %08x",
                  l->name, caller, READ_ONCE(l->caller));
    }
}

static ALWAYS_INLINE void acquire(struct spinlock *l, bool nested, u32 caller)
{
    lockdep_acquire(l->name, l, LOCKDEP_SPIN, nested, caller);
    while (unlikely(__atomic_exchange_n(&l->locked, 1, __ATOMIC_ACQUIRE)))
        spin_wait(l, caller);
    WRITE_ONCE(l->holder, this_cpu());
    WRITE_ONCE(l->caller, caller);
}

static ALWAYS_INLINE void release(struct spinlock *l)
{
    assert(l->holder == this_cpu());
    lockdep_release(l, LOCKDEP_SPIN);
    WRITE_ONCE(l->holder, NULL);
    __atomic_store_n(&l->locked, 0, __ATOMIC_RELEASE);
}

void spin_lock(struct spinlock *l)
{
    preempt_disable();
    acquire(l, false, (u32)__builtin_return_address(0));
}

void spin_lock_nested(struct spinlock *l)
{
    preempt_disable();
    acquire(l, true, (u32)__builtin_return_address(0));
}

void spin_unlock(struct spinlock *l)
{
    release(l);
    preempt_enable();
}

bool spin_try_lock(struct spinlock *l)
{
    preempt_disable();
    if (__atomic_exchange_n(&l->locked, 1, __ATOMIC_ACQUIRE)) {
        preempt_enable();
        return false;
    }
    WRITE_ONCE(l->holder, this_cpu());
    WRITE_ONCE(l->caller, (u32)__builtin_return_address(0));
    lockdep_acquired_by_try(l->name, l, LOCKDEP_SPIN, l->caller);
    return true;
}

u32 spin_lock_irq(struct spinlock *l)
{
    u32 flags = irq_save();
    preempt_disable();
    acquire(l, false, (u32)__builtin_return_address(0));
    return flags;
}

void spin_unlock_irq(struct spinlock *l, u32 flags)
{
    release(l);
    preempt_enable_no_resched();
    irq_restore(flags);
    // A wake-up under the lock may have made a switch due on this CPU.
    if ((flags & 0x200) && unlikely(this_cpu_read(need_resched))) {
        preempt_disable();
        preempt_enable();
    }
}
