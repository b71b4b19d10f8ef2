#include "kernel/sync/mutex.h"

#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "kernel/sync/lock_class.h"
#include "kernel/sync/lockdep.h"
#include "kernel/trace/point.h"

#if !defined(__clang__) && !defined(CHECKED)
#pragma GCC optimize("omit-frame-pointer") // as in spinlock.c
#endif

// In functions without a patchable entry: trace_exit if a traced function ended
// with a jump to them.
#define CALLER ((u32)__builtin_return_address(0))

// In `next`: this hold is measured. The other bits are the heir's address.
#define MEASURED 1u

void mutex_init(struct mutex *m, const char *name)
{
    m->class = lock_class_known(name, LOCK_MUTEX);
    m->owner = m->class ? NULL : MUTEX_NEW;
    m->caller = 0;
    m->next = 0;
    waitq_init(&m->queue, name);
}

// `owner` is changed atomically, at any time. But only the current thread sets
// it to itself, or from itself to NULL, so the result stays valid.
static bool owned(const struct mutex *m)
{
    return READ_ONCE(m->owner) == current;
}

// Compare-and-swap from `owner`, NULL or MUTEX_NEW, to the current thread.
// Returns the old owner: the mutex is taken if it is the expected one.
static ALWAYS_INLINE struct thread *take_from(struct mutex *m,
                                              struct thread *owner)
{
    __atomic_compare_exchange_n(&m->owner, &owner, current, false,
                                __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
    return owner;
}

static struct thread *heir(u32 next)
{
    return (struct thread *)(next & ~MEASURED);
}

// Becomes the heir if there is none.
static bool claim(struct mutex *m)
{
    u32 next = READ_ONCE(m->next);
    while (!heir(next))
        if (__atomic_compare_exchange_n(&m->next, &next, next | (u32)current,
                                        false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            return true;
    return false;
}

// Taken, or handed over by its owner.
static bool taken(struct mutex *m)
{
    struct thread *owner = take_from(m, NULL);
    return !owner || owner == current;
}

// A waiter that was woken and finds the mutex taken again becomes the heir, and
// tries again: an owner that it still finds then sees the heir, or releases the
// mutex and wakes a waiter, and then the next owner sees it.
static bool taken_or_claimed(struct mutex *m, bool *woken)
{
    if (taken(m) || (*woken && claim(m) && taken(m)))
        return true;
    *woken = true;
    return false;
}

static KEEPS_FRAME void wait(struct mutex *m, u32 caller)
{
    u64 began = rdtsc();
    caller = call_trace_caller(caller);
    if (owned(m))
        panic("mutex %s: taken again at %08x by its owner, taken at %08x",
              m->queue.name, linked_address(caller), linked_address(m->caller));
    bool woken = false;
    wait_event(&m->queue, taken_or_claimed(m, &woken), WAIT_UNINTERRUPTIBLE,
               WAIT_FOREVER);
    if (heir(READ_ONCE(m->next)) == current) // it was free when it was claimed
        __atomic_fetch_and(&m->next, MEASURED, __ATOMIC_RELAXED);
    u64 cycles = rdtsc() - began;
    lock_class_waited(m->class, cycles);
    TRACE(lock_contended, .lock = (u32)m, .caller = linked_address(caller),
          .cycles = cycles);
}

static NOINLINE void measure(struct mutex *m)
{
    lock_class_overflowed(m->class);
    m->since = rdtsc();
    __atomic_fetch_or(&m->next, MEASURED, __ATOMIC_RELAXED);
}

// Slow path: the mutex was not free, or was never taken before.
static NOINLINE KEEPS_FRAME void take_slowly(struct mutex *m, u32 caller)
{
    if (take_from(m, MUTEX_NEW) == MUTEX_NEW)
        m->class = lock_class_of(m->queue.name, LOCK_MUTEX);
    else
        wait(m, caller);
    m->caller = caller;
    if (!lock_class_taken(m->class))
        measure(m);
}

static NOINLINE NORETURN void misused(const struct mutex *m)
{
    panic("mutex %s: %s, taken at %08x", m->queue.name,
          this_cpu_read(irq_depth)
              ? "taken in an interrupt"
              : "unlocked by a thread that is not its owner",
          linked_address(m->caller));
}

NOTRACE void mutex_lock(struct mutex *m)
{
    if (unlikely(this_cpu_read(irq_depth)))
        misused(m);
    lockdep_acquire(m->queue.name, m, LOCKDEP_MUTEX, false, CALLER);
    if (unlikely(take_from(m, NULL))) {
        take_slowly(m, CALLER);
        return;
    }
    m->caller = CALLER;
    if (unlikely(!lock_class_taken(m->class)))
        measure(m);
}

static ALWAYS_INLINE void give(struct mutex *m)
{
    lockdep_release(m, LOCKDEP_MUTEX);
    // The exchange is a full barrier: a waiter queued before it is seen below;
    // a waiter queued later finds the mutex free.
    (void)__atomic_exchange_n(&m->owner, NULL, __ATOMIC_SEQ_CST);
    if (unlikely(!list_empty_unlocked(&m->queue.waiters)))
        waitq_wake_one(&m->queue);
}

// The heir leaves the queue with its lock held, so it stays until it is woken.
// The store is a full barrier, as in `give`.
static KEEPS_FRAME void hand_over(struct mutex *m, struct thread *to)
{
    lockdep_release(m, LOCKDEP_MUTEX);
    u32 flags = spin_lock_irq(&m->queue.lock);
    wakes_count(&m->queue.wakes);
    __atomic_store_n(&m->owner, to, __ATOMIC_SEQ_CST);
    thread_wake(to);
    spin_unlock_irq(&m->queue.lock, flags);
}

// This hold is measured, or there is an heir.
static NOINLINE KEEPS_FRAME void unlock_slowly(struct mutex *m)
{
    u32 next = __atomic_exchange_n(&m->next, 0, __ATOMIC_SEQ_CST);
    if (next & MEASURED)
        lock_class_held(m->class, rdtsc() - m->since);
    if (heir(next))
        hand_over(m, heir(next));
    else
        give(m);
}

void mutex_unlock(struct mutex *m)
{
    if (unlikely(!owned(m)))
        misused(m);
    if (unlikely(READ_ONCE(m->next)))
        unlock_slowly(m);
    else
        give(m);
}

bool mutex_held(const struct mutex *m)
{
    return owned(m);
}

#ifdef LOCKDEP
void mutex_assert_held(const struct mutex *m)
{
    if (unlikely(!owned(m)))
        lockdep_not_held(m->queue.name, READ_ONCE(m->owner), m->caller,
                         (u32)__builtin_return_address(0));
}
#endif
