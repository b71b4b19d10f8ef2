// Times in nanoseconds, for tests that measure them.
#pragma once

#include "test.h"

#include <sys/utsname.h>

#define MS 1000000ull
#define SEC 1000000000ull

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    check(clock_gettime(clock, &t) == 0);
    check(t.tv_nsec >= 0 && t.tv_nsec < (long)SEC);
    return t.tv_sec * SEC + t.tv_nsec;
}

static inline struct timespec spec(uint64_t ns)
{
    return (struct timespec){ ns / SEC, ns % SEC };
}

static inline uint64_t from_spec(const struct timespec *t)
{
    return t->tv_sec * SEC + t->tv_nsec;
}

// For promises that only Strobe makes, and what tests may do only there.
static inline bool on_strobe(void)
{
    struct utsname system;
    check(uname(&system) == 0);
    return !strcmp(system.sysname, "Strobe");
}

static inline void use_cpu(uint64_t ns)
{
    uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
        ;
}

// A signal handler that counts its calls and notes the time of the first, on
// the clock `watched`.
static volatile int calls;
static volatile uint64_t first_call;
static clockid_t watched;

static inline void count_call(int signal)
{
    (void)signal;
    if (calls++ == 0)
        first_call = clock_ns(watched);
}
