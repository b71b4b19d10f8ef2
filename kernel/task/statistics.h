// What the scheduler tells about itself and about threads.
#pragma once

#include "kernel/sched/thread.h"

// Context switches since the start, on all CPUs and on one. Any context but
// NMI.
u64 sched_switches(void);
u64 sched_cpu_switches(u32 cpu);

// How a thread stands, at one instant. Any context but NMI.
struct thread_statistics {
    enum thread_state state;
    u32 cpu, priority, affinity;
    u64 voluntary, forced; // switches
    u32 migrations, faults;
    const char *wait_on; // NULL: it does not sleep
};
void thread_statistics(const struct thread *t, struct thread_statistics *out);

// What threads have done.
struct task_figures {
    u64 user, kernel;      // TSC cycles
    u64 voluntary, forced; // switches
    u64 migrations, faults;
    u32 peak_pages; // the most that was resident at once in one address space
};
// Sums; of peaks the higher one.
void task_figures_add(struct task_figures *to, const struct task_figures *f);
// Of all threads of a task, living and dead. tasks_lock held.
void task_figures_locked(struct task *t, struct task_figures *out);
// And of the children that were waited for. tasks_lock held.
void task_figures_family(struct task *t, struct task_figures *out);
// Likewise of a living thread; no peak.
void thread_figures(const struct thread *t, struct task_figures *out);
// Its address space is about to go. tasks_lock held.
void task_figures_keep_peak(struct task *t);
// A thread has ended: its figures become its task's. tasks_lock held.
void task_figures_keep(struct task *task, const struct thread *dead);
