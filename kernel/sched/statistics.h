// Statistics of the scheduler and of threads.
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

// Calls fn with the thread that runs on that CPU, which cannot switch until fn
// returns. Interrupts off; fn takes no lock.
void sched_visit_running(u32 cpu, void (*fn)(struct thread *, void *),
                         void *arg);
