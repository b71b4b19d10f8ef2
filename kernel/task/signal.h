// Signals, as Linux/i386 defines them.
#pragma once

#include "kernel/base/signal.h"
#include "kernel/base/thread.h"
#include "kernel/sync/spinlock.h"

struct signals {
    struct spinlock lock; // interrupt-disabling
    struct sigaction_k action[NSIG];
    sigset_t pending; // sent to the task as a whole
    struct siginfo_queue queue;
    u32 refs;
};

struct task;
struct thread;
struct trapframe;

// Sends to a task / to one thread. 0, -EPERM (a kernel thread), -EINVAL, or
// -EAGAIN: RLIMIT_SIGPENDING signals are queued, for signals from SIGRTMIN on.
// Any context but NMI.
int signal_send_task(struct task *t, int sig, const struct siginfo *info);
int signal_send_thread(struct thread *t, int sig, const struct siginfo *info);
// Sends to every task of a process group; -ESRCH if there is none. Takes
// tasks_lock.
int signal_send_pgrp(u32 pgid, int sig, const struct siginfo *info);
// The current thread blocks `sig`, or its task ignores it by SIG_IGN: the tty
// then does not send a background task SIGTTIN or SIGTTOU.
bool signal_ignored_or_blocked(int sig);
// Makes a thread check its signals; wakes it from sleep and from a stop.
void signal_kick(struct thread *t);
// Sending `sig` now would have no effect: such a signal is already pending (for
// the thread `to`, or with NULL for the task), or it is ignored. Any context
// but NMI.
bool signal_would_be_lost(struct task *t, const struct thread *to, int sig);
// It is ignored, and no thread that could get it blocks it: nothing but a
// change of its action gives it an effect. (SIGCONT and SIGCHLD have others.)
bool signal_discarded(struct task *t, const struct thread *to, int sig);
// The current task ignores `sig`, explicitly or by default.
bool signal_is_ignored(int sig);
// `sig` is ignored from now on: discards pending ones (sigaction(2)).
void signal_discard(struct task *t, int sig);
// Discards all queued signals.
void signal_queue_clear(struct siginfo_queue *q);
// exec: handlers are reset to the default, ignored signals stay ignored.
void signal_reset_handlers(struct signals *s);
// SIGCHLD is ignored or SA_NOCLDWAIT is set: children reap themselves.
bool signal_children_unwanted(struct task *t);
// SA_NOCLDSTOP is set: no SIGCHLD when children stop or continue.
bool signal_children_stop_quietly(struct task *t);
// pselect, ppoll, sigsuspend: sets `mask` until the call returns to user mode.
void signal_set_temporary_mask(sigset_t mask);
// sigtimedwait: takes a pending signal of `set` (blocked by the caller) out of
// the queue, or waits for one. Its number, -EAGAIN at the deadline, -EINTR.
int signal_wait_for(sigset_t set, u64 deadline, struct siginfo *out);
// The pending signals that the current thread does not block. signals.lock of
// its task is held.
sigset_t signal_deliverable(void);
// On return to user mode: runs handlers, stops or ends the task. Interrupts on.
void signal_deliver(struct trapframe *tf);
