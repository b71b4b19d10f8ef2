// Sleeping locks with an owner. Not recursive; never in interrupt context.
//
// A free mutex is taken by who comes first. A waiter that was woken and found
// it taken again becomes the heir: the next unlock hands the mutex over to it.
#pragma once

#include "kernel/sync/waitq.h"

// Value of `owner`: the mutex was never taken, and has no class yet.
#define MUTEX_NEW ((struct thread *)1)

struct mutex {
    struct thread *owner;
    u32 caller;
    u32 class; // lock_class.h
    u32 next;  // the heir, and whether this hold is measured; atomic
    u64 since; // TSC, when this hold is measured
    struct waitq queue;
};
#define MUTEX_INIT(m, text)                                                    \
    {                                                                          \
        .owner = MUTEX_NEW, .queue = (struct waitq)WAITQ_INIT((m).queue, text) \
    }

void mutex_init(struct mutex *m, const char *name);
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);
bool mutex_held(const struct mutex *m); // by current

// As spin_assert_held.
#ifdef LOCKDEP
void mutex_assert_held(const struct mutex *m);
#else
static inline void mutex_assert_held(const struct mutex *m UNUSED)
{
}
#endif
