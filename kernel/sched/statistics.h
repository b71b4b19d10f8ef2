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
    const char *wait_on;   // NULL: it does not sleep
};
void thread_statistics(const struct thread *t, struct thread_statistics *out);
