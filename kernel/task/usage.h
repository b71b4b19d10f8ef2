// Resource usage of threads and tasks.
#pragma once

#include "kernel/sched/thread.h"

struct resource_usage {
    u64 user, kernel;      // TSC cycles
    u64 voluntary, forced; // switches
    u64 migrations, faults;
    u32 peak_pages; // peak of resident pages in one address space
};
// Adds the sums; takes the maximum of the peaks.
void usage_add(struct resource_usage *to, const struct resource_usage *f);
// Usage of all threads of a task, living and dead. tasks_lock held.
void task_usage_locked(struct task *t, struct resource_usage *out);
// The same plus that of the children that were waited for. tasks_lock held.
void task_usage_family(struct task *t, struct resource_usage *out);
// Usage of a living thread, without the peak.
void thread_usage(const struct thread *t, struct resource_usage *out);
// Keeps the peak of an address space that is about to be released. tasks_lock
// held.
void task_usage_keep_peak(struct task *t);
// Adds the usage of a thread that has ended to its task's. tasks_lock held.
void task_usage_keep(struct task *task, const struct thread *dead);
