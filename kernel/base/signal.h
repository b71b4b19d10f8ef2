// Linux/i386's signals: numbers, flags and layouts (signal(7), sigaction(2)).
#pragma once

#include "lib/types.h"

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
#define SIGRTMIN 32 // from here on, every instance sent is queued

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

// The siginfo of pending signals: for a standard signal the first sender's; for
// the real-time signals every instance's, in order of arrival.
struct queued_signal;
struct siginfo_queue {
    // By number: the last entry of a circular list, whose successor is the
    // first. NULL: only the number is known.
    struct queued_signal *last[NSIG];
    u32 kept; // in all
};
