// Shared by all guest tests. A test prints "ok WHAT" for each promise kept and
// exits with 0; it prints the first broken one and exits with 1. The same
// binaries pass on Linux, which validates the tests.
//
// Output uses write(2), unbuffered, so that fork duplicates none of it.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TEST_SECONDS 600 // a test that hangs is ended by SIGALRM

#define ok(what) dprintf(1, "ok %s\n", what)

#define check(condition)                                              \
    do {                                                              \
        if (!(condition)) {                                           \
            dprintf(1, "FAILED %s:%d: %s (errno %d: %s)\n", __FILE__, \
                    __LINE__, #condition, errno, strerror(errno));    \
            _exit(1);                                                 \
        }                                                             \
    } while (0)

// The call must fail, with this error.
#define check_error(call, error) \
    check((errno = 0, (call)) == -1 && errno == (error))

// Runs fn in a child and returns its wait status.
static inline int in_child(void (*fn)(void))
{
    int status;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    check(waitpid(pid, &status, 0) == pid);
    return status;
}

static inline bool exited_with(int status, int code)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static inline bool killed_by(int status, int signal)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

static inline uint64_t now_ns(void)
{
    struct timespec t;
    check(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static inline void sleep_ms(unsigned ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000l };
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

static inline void on_signal(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
    check(sigaction(signal, &action, NULL) == 0);
}
