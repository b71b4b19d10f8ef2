// Spinlocks (test-and-set). The fast paths only take and release a free lock.
// All other work is in separate functions, reached by tail calls, so that the
// fast paths need no stack frame. With frame pointers, which every other file
// has, a ping-pong of two processes through pipes takes 3,683 instructions
// instead of 3,644, and stopping a callout 111 instead of 107 (`make bench`).

#include "kernel/sync/spinlock.h"

#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "kernel/sync/lock_class.h"
#include "kernel/sync/lockdep.h"
#include "kernel/trace/point.h"

#if !defined(__clang__) && !defined(CHECKED)
// Not in checked kernels: their functions are larger, and would use ebp for
// other values, so that backtraces would lose callers.
#pragma GCC optimize("omit-frame-pointer")
#endif

// A lock that is not released within this many spins is a bug. The limit is a
// count, not a time: with QEMU's -icount each PAUSE gives another CPU a turn.
#define SPIN_LIMIT 400000000u

// Bit 0 of `holder`, beside the CPU's address: this hold is measured.
#define MEASURED 1u

// trace_exit if a traced function ended with a jump to a function of this file.
#define CALLER ((u32)__builtin_return_address(0))

void spin_init(struct spinlock *l, const char *name)
{
    l->class = lock_class_known(name, LOCK_SPIN);
    l->locked = l->class ? 0 : SPIN_NEW;
    l->holder = NULL;
    l->caller = 0;
    l->name = name;
}

static u32 holder_of(const struct spinlock *l)
{
    return (u32)READ_ONCE(l->holder) & ~MEASURED;
}

bool spin_held(const struct spinlock *l)
{
    return READ_ONCE(l->locked) == SPIN_LOCKED &&
           holder_of(l) == (u32)this_cpu();
}

#ifdef LOCKDEP
void spin_assert_held(const struct spinlock *l)
{
    if (unlikely(!spin_held(l)))
        lockdep_not_held(l->name, READ_ONCE(l->locked), READ_ONCE(l->caller),
                         (u32)__builtin_return_address(0));
}
#endif

// `holder` and `caller` are written by the lock's holder and read by any CPU
// without the lock. No ordering is needed: `holder` is this CPU only if this
// CPU set it, and `caller` is only used in messages.
static void spin_wait(struct spinlock *l, u32 caller)
{
    if (holder_of(l) == (u32)this_cpu())
        panic("spinlock %s: CPU %u already holds it: wanted at %08x, locked "
              "at %08x",
              l->name, this_cpu()->id, linked_address(caller),
              linked_address(READ_ONCE(l->caller)));
    u32 spins = 0;
    while (READ_ONCE(l->locked) == SPIN_LOCKED) {
        cpu_relax();
        if (++spins == SPIN_LIMIT)
            panic("spinlock %s: stuck; wanted at %08x, held since %08x",
                  l->name, linked_address(caller),
                  linked_address(READ_ONCE(l->caller)));
    }
}

static ALWAYS_INLINE u32 try(struct spinlock *l)
{
    return __atomic_exchange_n(&l->locked, SPIN_LOCKED, __ATOMIC_ACQUIRE);
}

static ALWAYS_INLINE void set_holder(struct spinlock *l, u32 caller)
{
    WRITE_ONCE(l->holder, this_cpu());
    WRITE_ONCE(l->caller, caller);
}

static NOINLINE u32 measure(struct spinlock *l, u32 flags)
{
    lock_class_overflowed(l->class);
    l->since = (u32)rdtsc();
    WRITE_ONCE(l->holder, (struct cpu *)((u32)this_cpu() | MEASURED));
    return flags;
}

// Slow path: the lock was not free, or was never taken before (`was`). Returns
// `flags` unchanged.
static NOINLINE KEEPS_FRAME u32 take_slowly(struct spinlock *l, u32 flags,
                                            u32 caller, u32 was)
{
    u64 began = rdtsc();
    bool waited = was == SPIN_LOCKED;
    caller = call_trace_caller(caller);
    while (was == SPIN_LOCKED) {
        spin_wait(l, caller);
        was = try(l);
    }
    set_holder(l, caller);
    if (was == SPIN_NEW)
        l->class = lock_class_of(l->name, LOCK_SPIN);
    if (waited) {
        u64 cycles = rdtsc() - began;
        lock_class_waited(l->class, cycles);
        TRACE(lock_contended, .lock = (u32)l, .caller = linked_address(caller),
              .cycles = cycles);
    }
    return lock_class_taken(l->class) ? flags : measure(l, flags);
}

static ALWAYS_INLINE u32 take(struct spinlock *l, bool nested, u32 flags,
                              u32 caller)
{
    lockdep_acquire(l->name, l, LOCKDEP_SPIN, nested, caller);
    u32 was = try(l);
    if (unlikely(was))
        return take_slowly(l, flags, caller, was);
    set_holder(l, caller);
    if (unlikely(!lock_class_taken(l->class)))
        return measure(l, flags);
    return flags;
}

static ALWAYS_INLINE void give(struct spinlock *l)
{
    lockdep_release(l, LOCKDEP_SPIN);
    WRITE_ONCE(l->holder, NULL);
    __atomic_store_n(&l->locked, 0, __ATOMIC_RELEASE);
}

// Releases a lock whose hold is measured; panics if this CPU does not hold it.
static void end_measured(struct spinlock *l)
{
    if (!spin_held(l))
        panic("spinlock %s: CPU %u unlocks it but does not hold it", l->name,
              this_cpu()->id);
    lock_class_held(l->class, (u32)rdtsc() - l->since);
    give(l);
}

void spin_lock(struct spinlock *l)
{
    preempt_disable();
    take(l, false, 0, CALLER);
}

void spin_lock_nested(struct spinlock *l)
{
    preempt_disable();
    take(l, true, 0, CALLER);
}

static NOINLINE void unlock_measured(struct spinlock *l)
{
    end_measured(l);
    preempt_enable();
}

void spin_unlock(struct spinlock *l)
{
    if (unlikely(l->holder != this_cpu())) {
        unlock_measured(l);
        return;
    }
    give(l);
    preempt_enable();
}

bool spin_try_lock(struct spinlock *l)
{
    preempt_disable();
    if (READ_ONCE(l->locked) == SPIN_LOCKED || try(l) == SPIN_LOCKED) {
        preempt_enable();
        return false;
    }
    set_holder(l, CALLER);
    // Also finds the class of a lock that is not new: no case for SPIN_NEW.
    l->class = lock_class_of(l->name, LOCK_SPIN);
    if (!lock_class_taken(l->class))
        measure(l, 0);
    lockdep_acquired_by_try(l->name, l, LOCKDEP_SPIN, l->caller);
    return true;
}

u32 spin_lock_irq(struct spinlock *l)
{
    u32 flags = irq_save();
    preempt_disable();
    return take(l, false, flags, CALLER);
}

// A wake-up with the lock held may have made a switch due on this CPU.
static NOINLINE void switch_now(void)
{
    preempt_disable();
    preempt_enable();
}

static ALWAYS_INLINE void irqs_back(u32 flags)
{
    preempt_enable_no_resched();
    if (!(flags & 0x200))
        return;
    irq_enable();
    if (unlikely(this_cpu_read(need_resched)))
        switch_now();
}

static NOINLINE void unlock_irq_measured(struct spinlock *l, u32 flags)
{
    end_measured(l);
    irqs_back(flags);
}

void spin_unlock_irq(struct spinlock *l, u32 flags)
{
    if (unlikely(l->holder != this_cpu())) {
        unlock_irq_measured(l, flags);
        return;
    }
    give(l);
    irqs_back(flags);
}
