// Wait queues: a thread sleeps until a condition, that others change, holds.
//
//     err = wait_event(&q, condition, WAIT_INTERRUPTIBLE, deadline);
//
// `condition` is evaluated without any lock held by the macro; the waker
// changes what it reads first and calls waitq_wake_* after. No wake-up is lost:
// the thread is on the queue and marked sleeping before the condition is read.
// Waking: any context. The queue's lock is an interrupt-disabling one.
#pragma once

#include "kernel/sync/spinlock.h"

struct waitq {
    struct spinlock lock;
    struct list waiters;
    const char *name; // what a sleeper waits on, as ps shows it
};
#define WAITQ_INIT(q, text)                               \
    {                                                     \
        SPINLOCK_INIT(text), LIST_INIT((q).waiters), text \
    }

struct waiter {
    struct list node;
    struct thread *thread;
    struct waitq *queue; // NULL: not queued
};

#define WAIT_UNINTERRUPTIBLE 0u
#define WAIT_INTERRUPTIBLE 1u // any deliverable signal ends it: -EINTR
#define WAIT_KILLABLE 2u      // only one that ends the task does

// Deadlines are in clock_now_ns units, or for ever, or on the wall clock, in
// nanoseconds since 1970: that moves with the clock when somebody sets it.
#define WAIT_FOREVER (~0ull)
#define WAIT_WALL_CLOCK (1ull << 63)
#define WAIT_UNTIL_WALL(ns) ((ns) | WAIT_WALL_CLOCK)

void waitq_init(struct waitq *q, const char *name);
// Wakes all, or the first sleeper that is still asleep.
void waitq_wake_all(struct waitq *q);
void waitq_wake_one(struct waitq *q);
bool waitq_empty(struct waitq *q);

// The pieces wait_event is made of; poll() uses them with several queues.
void waiter_add(struct waiter *w, struct waitq *q);
void waiter_remove(struct waiter *w);
UPCALL void wait_prepare(u32 mode);            // current is marked sleeping
UPCALL int wait_sleep(u32 mode, u64 deadline); // 0 woken, -ETIMEDOUT, -EINTR
UPCALL void wait_finish(void);                 // current is running again
// Makes a sleeping thread ready. True if it was asleep. Any context but NMI.
UPCALL bool thread_wake(struct thread *t);

#define wait_event(queue, condition, mode, deadline)   \
    ({                                                 \
        int wait_err = 0;                              \
        struct waiter wait_w;                          \
        waiter_add(&wait_w, (queue));                  \
        for (;;) {                                     \
            wait_prepare(mode);                        \
            if (condition) {                           \
                wait_err = 0;                          \
                break;                                 \
            }                                          \
            if (wait_err)                              \
                break;                                 \
            wait_err = wait_sleep((mode), (deadline)); \
        }                                              \
        wait_finish();                                 \
        waiter_remove(&wait_w);                        \
        wait_err;                                      \
    })
