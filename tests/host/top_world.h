// Synthetic machines for the tests of top: two data sets.
#pragma once

#include "test.h"

#include "user/top/views.h"

#define TASKS 20
#define CPUS 32
#define HZ 1000000000ull // a cycle is a nanosecond

// A data set with room for what a test adds to it.
struct world {
    struct dataset d;
    struct sysinfo_cpu cpus[CPUS];
    struct sysinfo_task tasks[TASKS];
    struct sysinfo_thread threads[TASKS];
    struct sysinfo_exception exceptions[2];
    struct sysinfo_syscall syscalls[2];
};

static struct world before, now;

static inline void world_init(struct world *w, u64 seconds)
{
    memset(w, 0, sizeof(*w));
    w->d.uptime.seconds = seconds;
    w->d.memory.total = 1 << 20;
    w->d.cpus = w->cpus;
    w->d.tasks = w->tasks;
    w->d.threads = w->threads;
    w->d.exceptions = w->exceptions;
    w->d.syscalls = w->syscalls;
}

static inline void worlds(void)
{
    world_init(&before, 10);
    world_init(&now, 11);
}

static inline struct sysinfo_cpu *add_cpu(struct world *w, u64 user, u64 kernel,
                                          u64 irq, u64 idle)
{
    struct sysinfo_cpu *c = &w->cpus[w->d.cpu_count];

    *c = (struct sysinfo_cpu){ .id = w->d.cpu_count++,
                               .frequency = HZ,
                               .user = user,
                               .kernel = kernel,
                               .irq = irq,
                               .idle = idle,
                               .busy = user + kernel + irq,
                               .elapsed = user + kernel + irq + idle };
    return c;
}

static inline struct sysinfo_task *
add_task(struct world *w, u32 id, const char *name, u64 user, u64 kernel)
{
    struct sysinfo_task *t = &w->tasks[w->d.task_count++];

    *t = (struct sysinfo_task){
        .id = id, .state = SYSINFO_WAITING, .user = user, .kernel = kernel
    };
    snprintf(t->name, sizeof(t->name), "%s", name);
    return t;
}

static inline struct comparison compared(void)
{
    struct comparison c;

    dataset_sort(&before.d);
    dataset_sort(&now.d);
    compare(&before.d, &now.d, &c);
    return c;
}

static inline void fill_cpus(u64 busy_each, u64 irq_each, u64 idle_each,
                             u32 cpus)
{
    for (u32 i = 0; i < cpus; i++) {
        add_cpu(&before, 5, 5, 5, 5);
        add_cpu(&now, 5 + busy_each / 2, 5 + busy_each - busy_each / 2,
                5 + irq_each, 5 + idle_each);
    }
}
