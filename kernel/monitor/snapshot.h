// Which tasks and threads there are, at one instant.
//
// A snapshot has the very tasks and threads that existed at one instant under
// tasks_lock, each once, and holds references to them: what has ended since can
// still be read, with the time it had. Only the references are taken while
// interrupts are off: 70 instructions a task and 24 a thread, which is
// measured (snapshot_longest_hold); memory is got before, and records are
// filled afterwards, one by one.
#pragma once

#include "kernel/mm/chain.h"

struct task;
struct thread;

struct snapshot_task {
    struct task *task;
    u32 parent;  // id, 0: none
    u32 threads; // of the list of threads, the next so many are its own
    // Of threads that had ended; all of it with what the others have.
    u64 dead_user, dead_kernel, dead_faults;
};

struct snapshot {
    struct chain tasks;   // struct snapshot_task
    struct chain threads; // struct thread *
};

#define SNAPSHOT_ALL UINT32_MAX

// All tasks, the kernel's (0) first, then in order of creation; or only the one
// with this id. 0, -ENOENT, -ENOMEM. To be freed in any case. Thread context,
// no locks held.
int snapshot_take(struct snapshot *s, u32 task);
void snapshot_free(struct snapshot *s); // may free tasks: may take locks

// TSC cycles: the longest that interrupts were off for a snapshot so far.
u64 snapshot_longest_hold(void);
u64 snapshot_count(void); // taken so far
