// Call tracing: who called whom, how often and how long, in the running kernel.
//
//     phone = kbox_connect(any task of yours)
//     ipc_call(phone, SPROFILE_M_CALLS_BEGIN, &options)
//
// The kernel patches a call into the entries of the chosen functions
// (system.functions lists what can be chosen). There is one trace at a time. It
// belongs to the phone that began it, and ends with it. All times are TSC
// cycles.
#pragma once

#include <stdint.h>

// Counts each pair of a place that calls and a function.
#define CALLS_ARCS 1
// Counts and times each call path: each function by the chain of chosen
// functions that led to it.
#define CALLS_PATHS 2

#define CALLS_DEPTH_MAX 256
#define CALLS_ALL UINT32_MAX

struct calls_options {
    uint32_t size; // sizeof(struct calls_options)
    uint32_t mode; // CALLS_ARCS, CALLS_PATHS
    // Only what the threads of this task do, without interrupts; 0: all but the
    // task that begins the trace, whose time is a root's.
    uint32_t task;
    uint32_t depth;     // of nested calls that are traced; 0: CALLS_DEPTH_MAX
    uint32_t entries;   // arcs or nodes for each CPU; 0: the kernel chooses
    uint32_t functions; // address of an array of entry addresses, ascending
    uint32_t function_count; // CALLS_ALL: all that can be chosen, without array
    uint32_t paused;         // 1: begins paused
};

// SPROFILE_M_CALLS_BEGIN: -EBUSY: there is a trace (CALLS_INFO says whose);
// -EINVAL: an option is out of range, or an address is no function's that can
// be chosen; -ESRCH: no such task; -EPERM: may not profile everything; -ENOMEM:
// nothing is patched. SPROFILE_M_PAUSE stops and resumes it, SPROFILE_M_END
// ends it.

#define CALLS_NONE 0    // states
#define CALLS_RUNNING 1 // counted, or recorded as events (`mode` 3 or 4)
#define CALLS_PAUSED 2

// SPROFILE_M_CALLS_INFO, on any phone. arg[1] = its address.
struct calls_info {
    uint32_t state; // CALLS_NONE: all the rest is 0
    uint32_t mode, task, depth, entries, functions; // as chosen
    uint32_t cpus;
    uint32_t owner;   // task id of who began it
    uint32_t records; // that CALLS_READ would report
    uint32_t most;    // entries used on the CPU that uses most
    uint64_t tsc_hz;
    uint64_t elapsed; // cycles while it ran, without pauses
    // What is not in the records: calls for which there was no free entry; that
    // were nested too deeply; times that a thread without memory for its frames
    // came to a CPU.
    uint64_t overflow, too_deep, no_frames;
    // The part of a traced call that the stub cannot measure, by measurement
    // when the trace began: cycles that are in the caller's `own`, and in the
    // function's own. 0 with CALLS_ARCS.
    uint32_t outside_caller, outside_own;
    uint64_t stopped; // cycles that the longest stop of all CPUs took so far
    uint32_t tsc_error_ppm; // how far tsc_hz may be off
    uint32_t reserved;
};

// SPROFILE_M_CALLS_READ, on any phone of a task that may profile everything.
// arg[1] = buffer, arg[2] = its bytes. The answer is the number of bytes
// stored: a struct calls_info, then its `records` records of one instant, by
// CPU. -ENOSPC: the buffer is too small; its first bytes are the calls_info, if
// they fit. With arg[3] = 1 all counts are set to 0 at the same instant.
// SPROFILE_M_CALLS_RESET does only that. Both: -ESHUTDOWN: there is no trace
// that counts.
struct calls_arc {
    uint32_t from; // the return address: behind the call instruction
    uint32_t to;   // the function's entry
    uint64_t count;
    uint32_t cpu;
    uint32_t reserved;
};

// The functions of the roots, whose `parent` is their own index: what is done
// outside of the chosen functions (by threads, that includes user mode).
#define CALLS_ROOT_THREADS 1
#define CALLS_ROOT_INTERRUPTS 2
#define CALLS_ROOT_IDLE 3
#define CALLS_ROOTS 3

// A call path on one CPU. A thread's time is its own: `own` excludes what other
// threads, interrupts and the tracing took meanwhile.
struct calls_node {
    uint32_t function; // entry address, or CALLS_ROOT_...
    uint32_t parent;   // index of a record before this one
    uint32_t cpu;
    uint32_t open; // calls that have not returned yet
    uint64_t calls;
    uint64_t own;         // without the functions that it called
    uint64_t tracing;     // the stubs of the functions that it called
    uint64_t blocked;     // the thread was not on a CPU
    uint64_t interrupted; // interrupts on top of it
    // The longest and the shortest call that has returned: own time and that of
    // the functions that it called. `shortest` is 2^32 - 1 if none returned or
    // it is longer.
    uint64_t longest;
    uint32_t shortest;
    uint32_t reserved;
};

// SPROFILE_M_CALLS_NAMES, on any phone of a task that may profile everything.
// arg[1] = array, arg[2] = number of its elements. Fills in the name of the
// kernel's function that contains the address. -EINVAL: there are more than
// CALLS_NAMES_MAX; -EFAULT: some may be filled in.
#define CALLS_NAMES_MAX 4096
struct calls_name {
    uint32_t address;
    uint32_t length; // of the name; 0: no function contains the address
    char name[40];   // the rest is 0; longer ones are cut off
};
