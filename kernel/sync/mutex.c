#include "kernel/sync/mutex.h"

#include "kernel/init/log.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/lockdep.h"

void mutex_init(struct mutex *m, const char *name)
{
    m->owner = NULL;
    m->caller = 0;
    waitq_init(&m->queue, name);
}

// `owner` is changed by atomics, at any time. Whoever asks whether it is
// himself gets an answer that only he could change.
static bool owned(const struct mutex *m)
{
    return READ_ONCE(m->owner) == current;
}

static bool try_take(struct mutex *m)
{
    struct thread *nobody = NULL;
    return __atomic_compare_exchange_n(&m->owner, &nobody, current, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static NOINLINE void mutex_wait(struct mutex *m, u32 caller)
{
    if (owned(m))
        panic("mutex %s: taken again at %08x by its owner, taken at %08x",
              m->queue.name, caller, m->caller);
    wait_event(&m->queue, try_take(m), WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
}

void mutex_lock(struct mutex *m)
{
    u32 caller = (u32)__builtin_return_address(0);
    assert(!this_cpu_read(irq_depth));
    lockdep_acquire(m->queue.name, m, LOCKDEP_MUTEX, false, caller);
    if (unlikely(!try_take(m)))
        mutex_wait(m, caller);
    m->caller = caller;
}

void mutex_unlock(struct mutex *m)
{
    assert(owned(m));
    lockdep_release(m, LOCKDEP_MUTEX);
    // The exchange is a full barrier: a waiter that queued itself before it is
    // seen below; one that comes later finds the mutex free.
    (void)__atomic_exchange_n(&m->owner, NULL, __ATOMIC_SEQ_CST);
    waitq_wake_one(&m->queue);
}

bool mutex_held(const struct mutex *m)
{
    return owned(m);
}
