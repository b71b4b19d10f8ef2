// The address-bin profiler: counts, in kernel memory and for one task at a
// time, the ranges of its code in which a periodic interrupt finds the task.
//
// After the assignment "Profile your processes!" (Operating Systems Practicum,
// Vrije Universiteit), where the calls are numbers 77 and 78 of MINIX.
#pragma once

#include <stdint.h>

// profile(task, low, high) begins, with all bins 0. low and high are the lowest
// and the highest address to count; both 0: the program's code, the text
// segment, again for each program that the task execs. A range outside the
// program of a task that was forked and has not yet called exec applies to the
// program that it will exec; until then nothing is counted. If that is
// position-independent, the range is of its file's addresses, and moves with
// it.
//     ESRCH   there is no such task
//     EFAULT  low > high, or not within the program's code
//     EBUSY   a task is being profiled
//     EPERM   it is another user's task (or, to end it, another user's profile)
// It ends when the task ends, when a bin is full, or by profile(0, ...). Time
// in the kernel and time blocked is not counted.
#define SYS_profile 1077

// getprof(struct prof_data *): the counts until now, or until it ended. EFAULT.
// EPERM: for another user.
#define SYS_getprof 1078

#define PROF_BINS 1024

struct prof_data {
    uint32_t low, high; // the range, both ends included
    // Bin i counts addresses from low + i * size on; size is the smallest for
    // which PROF_BINS are enough. 0: nothing has been profiled.
    uint32_t bins_used;
    uint32_t bins[PROF_BINS];
};

// The bytes of a bin. bins_used must be > 0.
static inline uint32_t prof_bin_size(const struct prof_data *p)
{
    uint64_t length = (uint64_t)p->high - p->low + 1;
    return (uint32_t)((length + PROF_BINS - 1) / PROF_BINS);
}
