// Statistics of the scheduler, threads and tasks.
#pragma once

#include "kernel/sched/thread.h"

// Number of context switches since start-up, on all CPUs and on one. Any
// context but NMI.
u64 sched_switches(void);
u64 sched_cpu_switches(u32 cpu);

// A consistent snapshot of a thread. Any context but NMI.
struct thread_statistics {
    enum thread_state state;
    u32 cpu, priority;
    struct cpu_set affinity;
    u64 voluntary, forced; // switches
    u32 migrations, faults;
    const char *wait_on; // NULL: it does not sleep
};
void thread_statistics(const struct thread *t, struct thread_statistics *out);

// Resource usage of threads or tasks.
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
