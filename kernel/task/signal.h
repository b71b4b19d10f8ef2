// Signals, as Linux/i386 defines them.
#pragma once

#include "kernel/base/signal.h"
#include "kernel/base/thread.h"
#include "kernel/sync/spinlock.h"

struct signals {
    struct spinlock lock; // interrupt-disabling
    struct sigaction_k action[NSIG];
    sigset_t pending; // to the task as a whole
    struct siginfo_queue queue;
    u32 refs;
};

struct task;
struct thread;
struct trapframe;

// Sends to a task / to one thread. 0 or -ESRCH, -EINVAL; -EAGAIN: of a signal
// from SIGRTMIN on, as many wait as RLIMIT_SIGPENDING allows. Any context but
// NMI.
int signal_send_task(struct task *t, int sig, const struct siginfo *info);
int signal_send_thread(struct thread *t, int sig, const struct siginfo *info);
// To every task of a process group; -ESRCH if there is none. tasks_lock is
// taken by it.
int signal_send_pgrp(u32 pgid, int sig, const struct siginfo *info);
// True when current's group may not touch the terminal's state with `sig`
// (blocked or ignored): the tty lets the operation go on.
bool signal_ignored_or_blocked(int sig);
// Makes a thread look at its signals, waking it from sleep and stop.
void signal_kick(struct thread *t);
// Nothing would come of sending it now: one of its number is pending already
// (for `to`, or with NULL for the task), or it is ignored. Any context but NMI.
bool signal_would_be_lost(struct task *t, const struct thread *to, int sig);
// The current task ignores it, by choice or by default.
bool signal_is_ignored(int sig);
// `sig` is ignored from now on: pending ones vanish (sigaction(2)).
void signal_discard(struct task *t, int sig);
// Drops what is queued.
void signal_queue_clear(struct siginfo_queue *q);
// exec: handlers become default, ignored ones stay.
void signal_reset_handlers(struct signals *s);
// SIGCHLD is ignored or SA_NOCLDWAIT is set: children are not waited for.
bool signal_children_unwanted(struct task *t);
// SA_NOCLDSTOP is set: it does not want to hear of children that stop.
bool signal_children_stop_quietly(struct task *t);
// pselect, ppoll, sigsuspend: `mask` until the call returns to user mode.
void signal_set_temporary_mask(sigset_t mask);
// Takes a pending signal of `set` (blocked by the caller) out of the queue, or
// waits for one. Its number, -EAGAIN at the deadline, -EINTR.
int signal_wait_for(sigset_t set, u64 deadline, struct siginfo *out);
// The signals of the current thread that are to be delivered now. signals.lock
// of its task is held.
sigset_t signal_deliverable(void);
// On the way to user mode: delivers, stops, kills. Interrupts on.
void signal_deliver(struct trapframe *tf);
