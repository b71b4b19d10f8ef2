// Shared by signal*.c. All callers hold signals.lock of the task.
#pragma once

#include "kernel/task/signal.h"
#include "kernel/task/task.h"

#define UNBLOCKABLE (SIGMASK(SIGKILL) | SIGMASK(SIGSTOP))
#define STOP_SIGNALS \
    (SIGMASK(SIGSTOP) | SIGMASK(SIGTSTP) | SIGMASK(SIGTTIN) | SIGMASK(SIGTTOU))

_Static_assert(STOP_SIGNALS == SIGMASK(SIGTTOU + 1) - SIGMASK(SIGSTOP),
               "the signals that stop have numbers in a row");

// The pending signals that `t` does not block.
static inline sigset_t deliverable(const struct thread *t)
{
    return (t->pending | t->task->signals.pending) & ~t->blocked;
}

// The lowest signal of a set that is not empty.
static inline int signal_lowest(sigset_t set)
{
    u32 low = (u32)set, high = (u32)(set >> 32);
    return (low ? __builtin_ctz(low) : 32 + __builtin_ctz(high)) + 1;
}

static inline bool signal_queues(int sig)
{
    return sig >= SIGRTMIN;
}

// Queues a signal's siginfo; of a signal that does not queue, only the first.
// 0, or -EAGAIN: no memory, `limit` signals are queued, or user `uid` has its
// share.
int signal_queue_put(struct siginfo_queue *q, int sig,
                     const struct siginfo *info, u32 limit, u32 uid);
// Dequeues the first signal of this number. True when there are more.
bool signal_queue_take(struct siginfo_queue *q, int sig, struct siginfo *out);
// Removes the signals of `mask` from a pending set and its queue.
void signal_drop(sigset_t *pending, struct siginfo_queue *q, sigset_t mask);
// The signal is ignored, explicitly or by default.
bool signal_ignored(const struct signals *s, int sig);
