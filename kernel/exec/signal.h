// Signals, as Linux/i386 defines them.
#pragma once

#include "kernel/sync/spinlock.h"

#define NSIG 64
typedef u64 sigset_t;
#define SIGMASK(n) (1ull << ((n)-1))

#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGBUS 7
#define SIGFPE 8
#define SIGKILL 9
#define SIGUSR1 10
#define SIGSEGV 11
#define SIGUSR2 12
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGSTKFLT 16
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGURG 23
#define SIGXCPU 24
#define SIGXFSZ 25
#define SIGVTALRM 26
#define SIGPROF 27
#define SIGWINCH 28
#define SIGIO 29
#define SIGPWR 30
#define SIGSYS 31
#define SIGRTMIN 32 // from here on each one sent arrives

#define SIG_DFL 0u
#define SIG_IGN 1u

#define SA_NOCLDSTOP 1u
#define SA_NOCLDWAIT 2u
#define SA_SIGINFO 4u
#define SA_RESTORER 0x04000000u
#define SA_ONSTACK 0x08000000u
#define SA_RESTART 0x10000000u
#define SA_NODEFER 0x40000000u
#define SA_RESETHAND 0x80000000u

#define SI_USER 0
#define SI_KERNEL 0x80
#define SI_TIMER (-2)
#define SI_TKILL (-6)

struct sigaction_k { // the layout of rt_sigaction's argument
    u32 handler;
    u32 flags;
    u32 restorer;
    sigset_t mask;
} PACKED;

struct siginfo { // what a signal carries; expanded to 128 bytes for the user
    s32 signo, err, code;
    u32 pid_or_addr; // si_pid, or si_addr for faults
    u32 uid;
    s32 status; // SIGCHLD; si_value for sigqueue
};

// What pending signals carry: of a standard signal the first sender's, of the
// others each one's, in their order.
struct queued_signal;
struct siginfo_queue {
    // By number, each in a ring: the last one, which leads to the first. NULL:
    // nothing but the number is known.
    struct queued_signal *last[NSIG];
    u32 kept; // in all
};

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
// A fault of the current thread: delivered even if blocked or ignored (then it
// kills).
void signal_fault(int sig, int code, u32 addr);
// True when a deliverable (unblocked, not ignored) signal waits for `current`.
bool signal_waiting(void);
// True when one that ends its task does. What may take long and has done a part
// looks at it from time to time. Thread context; a load when there is none.
bool signal_fatal(void);
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
