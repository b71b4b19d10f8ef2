// What the parts of bench share.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

uint64_t rdtsc(void);

// A system call without the C library's part; the kernel's own result.
static inline long call(long number, long b, long c, long d)
{
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "0"(number), "b"(b), "c"(c), "d"(d)
                     : "memory");
    return r;
}

// The step that is measured from here on: must() names it.
void begin(const char *step);
// Ends the process with status 1, the step's name, `what` and, if it is set,
// errno, unless the condition holds. A step that failed prints no cost.
void must(bool condition, const char *what);
// Waits for a child; its status, as waitpid gives it.
int end_of(pid_t child);

// What a small job costs: lines "NAME INSTRUCTIONS".
struct operation {
    const char *name;
    // Does the operation `n` times; all of them must succeed.
    void (*run)(int n);
    int times;
    void (*before)(void), (*after)(void);
    bool apart; // in a process of its own, for `before` changes the process
};
// System calls, and what starts processes: the same on Linux. (calls.c, jobs.c)
extern const struct operation calls[], jobs[]; // the last one has no name
// Two processes that yield to each other. (yields.c)
extern const struct operation yields[];

// What watching the machine costs: lines "NAME-TASKS INSTRUCTIONS". (watch.c)
void watch(void);

// What profiling costs: lines "NAME INSTRUCTIONS". (sampling.c)
void sampling(void);
// Calls `what` with 17 functions on the stack.
uint32_t on_deep_stack(uint32_t (*what)(void));

// What it costs the tool that records. (recording.c)
void recording(void);
