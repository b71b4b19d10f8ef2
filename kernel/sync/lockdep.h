// The lock checker (`make LOCKDEP=1`): detects a possible deadlock as soon as
// each of its two halves has happened once, without an actual deadlock.
//
// A class is all locks with one name. A violation of these rules is a panic
// that names both places:
//   order      the classes' "taken while holding" relation has no cycle;
//   interrupts a spinlock that an interrupt handler takes is never held with
//              interrupts on, nor is one that is taken while that one is held;
//   sleeping   no thread sleeps, or takes a mutex, with preemption or
//              interrupts off;
//   leaving    a thread holds no locks when it returns to user mode or ends;
//   held       at spin_assert_held and mutex_assert_held the lock is held by
//              this CPU or thread.
// Without LOCKDEP these functions are empty.
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
// Called before the wait for the lock. `nested`: another lock of the same class
// is held on purpose, in an order that the caller ensures (by address).
void lockdep_acquire(const char *name, const void *lock, enum lockdep_kind kind,
                     bool nested, u32 caller);
// A successful try-lock: the lock is held from now on. No order is checked,
// because a try-lock does not wait.
void lockdep_acquired_by_try(const char *name, const void *lock,
                             enum lockdep_kind kind, u32 caller);
void lockdep_release(const void *lock, enum lockdep_kind kind);
void lockdep_may_sleep(const char *what);
// Panics if the current thread holds a mutex.
void lockdep_none_held(const char *where);
// Copies the list of the spinlocks that a CPU holds. Exact only on that CPU,
// with interrupts off or in an NMI. lockdep_print prints such a list on the
// consoles.
void lockdep_spinlocks(u32 cpu, struct lockdep_stack *out);
void lockdep_print(const char *what, const struct lockdep_stack *s);
// Panics: `caller` is where the lock must be held, `taken` where it was taken
// last.
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
// Checked (panic) by kernels with LOCKDEP only.
#define assert_may_sleep() lockdep_may_sleep(__func__)
