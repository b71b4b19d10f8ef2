// The lock checker (`make LOCKDEP=1`): finds wrong use of locks the first time
// the two halves of it have each happened once, not when they collide.
//
// A class is all locks with one name. Checked, and a panic with both places
// when broken:
//   order      the classes' "taken while holding" relation has no circle;
//   interrupts a spinlock that an interrupt handler takes is never held with
//              interrupts on, nor is one that is taken while that one is held;
//   sleeping   nobody sleeps, or takes a mutex, with preemption or interrupts
//              off;
//   leaving    a thread goes back to user mode, and ends, without locks;
//   held       who comes by spin_assert_held or mutex_assert_held has the lock.
// Without LOCKDEP these are nothing at all.
#pragma once

#include "arch/cpu.h"

#define LOCKDEP_HELD_MAX 16

struct lockdep_held {
    u16 class;
    u32 caller;
    const void *lock;
};

// The locks a CPU (spinlocks) or a thread (mutexes) holds, in order.
struct lockdep_stack {
    u32 depth;
    struct lockdep_held held[LOCKDEP_HELD_MAX];
};

enum lockdep_kind { LOCKDEP_SPIN, LOCKDEP_MUTEX };

#ifdef LOCKDEP
// Before waiting for the lock. `nested`: another lock of the same class is held
// on purpose, in an order of its own (by address).
void lockdep_acquire(const char *name, const void *lock, enum lockdep_kind kind,
                     bool nested, u32 caller);
// A try that succeeded: held from now on, but waiting for it blocks nobody.
void lockdep_acquired_by_try(const char *name, const void *lock,
                             enum lockdep_kind kind, u32 caller);
void lockdep_release(const void *lock, enum lockdep_kind kind);
void lockdep_may_sleep(const char *what);
// The current thread has no mutex.
void lockdep_none_held(const char *where);
// A copy of the spinlocks that a CPU holds, right on that CPU with interrupts
// off, or in an NMI; and such a list on the consoles.
void lockdep_spinlocks(u32 cpu, struct lockdep_stack *out);
void lockdep_say(const char *what, const struct lockdep_stack *s);
// `caller` is where the lock must be held, `taken` where it was taken last.
NORETURN void lockdep_not_held(const char *name, bool by_others, u32 taken,
                               u32 caller);
#else
static inline void lockdep_acquire(const char *name UNUSED,
                                   const void *lock UNUSED,
                                   enum lockdep_kind kind UNUSED,
                                   bool nested UNUSED, u32 caller UNUSED)
{
}
static inline void lockdep_acquired_by_try(const char *name UNUSED,
                                           const void *lock UNUSED,
                                           enum lockdep_kind kind UNUSED,
                                           u32 caller UNUSED)
{
}
static inline void lockdep_release(const void *lock UNUSED,
                                   enum lockdep_kind kind UNUSED)
{
}
static inline void lockdep_may_sleep(const char *what UNUSED)
{
}
static inline void lockdep_none_held(const char *where UNUSED)
{
}
#endif

// A precondition: preemption and interrupts are on, no spinlock is held.
// Kernels with LOCKDEP panic if not, the others do not look.
#define assert_may_sleep() lockdep_may_sleep(__func__)
