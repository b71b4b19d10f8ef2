// What the files of signals share. signals.lock of the task is held by all
// callers.
#pragma once

#include "kernel/exec/signal.h"

#define UNBLOCKABLE (SIGMASK(SIGKILL) | SIGMASK(SIGSTOP))
#define STOP_SIGNALS \
    (SIGMASK(SIGSTOP) | SIGMASK(SIGTSTP) | SIGMASK(SIGTTIN) | SIGMASK(SIGTTOU))

// Keeps what a signal carries, if it is the first of its number.
void signal_queue_put(struct siginfo_queue *q, int sig,
                      const struct siginfo *info);
// Gives it, and forgets it.
void signal_queue_take(struct siginfo_queue *q, int sig, struct siginfo *out);
// Takes the signals of `mask` out of a pending set and its queue.
void signal_drop(sigset_t *pending, struct siginfo_queue *q, sigset_t mask);
// By choice or by default nothing comes of it.
bool signal_ignored(const struct signals *s, int sig);
