// Sleeping locks with an owner. Not recursive; never in interrupt context.
#pragma once

#include "kernel/sync/waitq.h"

struct mutex {
    struct thread *owner;
    u32 caller;
    struct waitq queue;
};
#define MUTEX_INIT(m, text)                  \
    {                                        \
        NULL, 0, WAITQ_INIT((m).queue, text) \
    }

void mutex_init(struct mutex *m, const char *name);
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);
bool mutex_held(const struct mutex *m); // by current
