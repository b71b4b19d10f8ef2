// Wait queues: a thread sleeps until a condition holds that other threads or
// interrupts change.
//
//     err = wait_event(&q, condition, WAIT_INTERRUPTIBLE, deadline);
//
// The macro evaluates `condition` without holding a lock. A waker first changes
// the condition, then calls waitq_wake_*. No wake-up is lost: the thread is on
// the queue and its state is sleeping before the condition is read. Waking: any
// context but NMI. The queue's lock is interrupt-disabling.
#pragma once

#include "kernel/debug/wakes.h"
#include "kernel/sync/spinlock.h"

struct waitq {
    struct spinlock lock;
    struct list waiters;
    const char *name; // what its sleepers wait on, as shown by ps
    struct wakes wakes;
};
#define WAITQ_INIT(q, text)                                             \
    {                                                                   \
        .lock = SPINLOCK_INIT(text), .waiters = LIST_INIT((q).waiters), \
        .name = text                                                    \
    }

struct waiter {
    struct list node;
    struct thread *thread;
    struct waitq *queue; // NULL: not queued
    struct wakes_seen wakes;
};

#define WAIT_UNINTERRUPTIBLE 0u
#define WAIT_INTERRUPTIBLE 1u // any deliverable signal ends it: -EINTR
#define WAIT_KILLABLE 2u      // only a signal that ends the task: -EINTR

// Deadlines are in clock_now_ns units, or WAIT_FOREVER, or on the wall clock,
// in nanoseconds since 1970: such a deadline follows when the clock is set.
#define WAIT_FOREVER (~0ull)
#define WAIT_WALL_CLOCK (1ull << 63)
#define WAIT_UNTIL_WALL(ns) ((ns) | WAIT_WALL_CLOCK)

void waitq_init(struct waitq *q, const char *name);
// Wake all sleepers, or the first one that is still asleep.
void waitq_wake_all(struct waitq *q);
void waitq_wake_one(struct waitq *q);
// Whether these would wake nobody: a thread that queues itself later sees what
// the caller changed before.
bool waitq_empty(struct waitq *q);

// The parts of wait_event; poll() uses them with several queues.
void waiter_add(struct waiter *w, struct waitq *q);
void waiter_remove(struct waiter *w);
UPCALL void wait_prepare(u32 mode);            // sets current's state: asleep
UPCALL int wait_sleep(u32 mode, u64 deadline); // 0 woken, -ETIMEDOUT, -EINTR
UPCALL void wait_finish(void);                 // sets it to running again
// Makes a sleeping thread ready. True if it was asleep. Any context but NMI.
UPCALL bool thread_wake(struct thread *t);

#define wait_event(queue, condition, mode, deadline)   \
    ({                                                 \
        int wait_err = 0;                              \
        struct waiter wait_w;                          \
        waiter_add(&wait_w, (queue));                  \
        for (;;) {                                     \
            wait_prepare(mode);                        \
            wakes_see(&wait_w);                        \
            if (condition) {                           \
                wait_err = 0;                          \
                wakes_check(&wait_w);                  \
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
