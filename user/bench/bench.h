// Declarations shared by the parts of bench.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

uint64_t rdtsc(void);

// A system call without the C library's wrapper. Returns the kernel's result.
static inline long call(long number, long b, long c, long d)
{
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "0"(number), "b"(b), "c"(c), "d"(d)
                     : "memory");
    return r;
}

// Sets the name of the step that is measured from here on, for must().
void begin(const char *step);
// Unless the condition holds: prints the step's name, `what` and, if set,
// errno, and ends the process with status 1. A step that failed prints no cost.
void must(bool condition, const char *what);
// Forks. The child ends with bench, however that ends.
pid_t fork_partner(void);
// Waits for a child. Returns its status, as of waitpid.
int end_of(pid_t child);

// Costs of small operations: lines "NAME INSTRUCTIONS".
struct operation {
    const char *name;
    // Runs the operation `n` times; all of them must succeed.
    void (*run)(int n);
    int times;
    void (*before)(void), (*after)(void);
    bool in_child; // in a child process, because `before` changes the process
};
// System calls, and operations that start processes: the same on Linux.
// (calls.c, jobs.c)
extern const struct operation calls[],
    jobs[]; // terminated by an entry without a name
// Two processes that yield to each other. (yields.c)
extern const struct operation yields[];

// The cost of posting into sensors: lines "NAME INSTRUCTIONS". (sensors.c)
void sensors(void);

// The cost of monitoring: lines "NAME-TASKS INSTRUCTIONS". (watch.c)
void watch(void);

// The cost of profiling: lines "NAME INSTRUCTIONS". (sampling.c)
void sampling(void);
// Calls `what` with 17 functions on the stack.
uint32_t on_deep_stack(uint32_t (*what)(void));

// The cost for the tool that records. (recording.c)
void recording(void);
