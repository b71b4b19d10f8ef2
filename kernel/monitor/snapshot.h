// Snapshots of tasks and threads, as of one instant.
//
// A snapshot has exactly the tasks and threads that existed at one instant
// under tasks_lock, each once, and holds references to them: the run time of a
// thread that has ended since can still be read. Only the references are taken
// with interrupts off: 70 instructions a task and 24 a thread, a time that is
// measured (snapshot_longest_hold). Memory is allocated before, and records are
// filled afterwards, one by one.
#pragma once

#include "kernel/mm/chain.h"

struct task;
struct thread;

struct snapshot_task {
    struct task *task;
    u32 parent;  // id, 0: none
    u32 threads; // the next `threads` entries of the list are its own
    // Of ended threads; the task's totals are these plus its living threads'.
    u64 dead_user, dead_kernel, dead_faults;
};

struct snapshot {
    struct chain tasks;   // struct snapshot_task
    struct chain threads; // struct thread *
};

#define SNAPSHOT_ALL UINT32_MAX

// Takes all tasks, the kernel's (0) first, then in order of creation; or only
// the task with this id. 0, -ENOENT, -ENOMEM. To be freed in any case. Thread
// context, no locks held.
int snapshot_take(struct snapshot *s, u32 task);
void snapshot_free(struct snapshot *s); // may free tasks: may take locks

// TSC cycles: the longest time so far with interrupts off for a snapshot.
u64 snapshot_longest_hold(void);
u64 snapshot_count(void); // taken so far
