// What top computes: two data sets, and what happened between them.
//
// Pure: knows neither the kernel nor the screen (tests/host/test_top.c).
//
// Percentages are hundredths of a percent of one CPU's capacity: 10000 are all
// cycles that a CPU had between the two data sets. Those of each CPU add up to
// 10000; those of all tasks, with what ended tasks have used, idle time and
// interrupts, to 10000 for each CPU.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strobe/sysinfo.h>

#define PERCENT_ALL 10000u // of one CPU

// Everything that was read at one moment. Lists are ordered by id.
struct dataset {
    struct sysinfo_uptime uptime;
    struct sysinfo_load load;
    struct sysinfo_totals totals;
    struct sysinfo_physmem memory;
    struct sysinfo_cpu *cpus;
    struct sysinfo_task *tasks;
    struct sysinfo_thread *threads;
    struct sysinfo_exception *exceptions;
    struct sysinfo_syscall *syscalls;
    size_t cpu_count, task_count, thread_count, exception_count, syscall_count;
};

// Orders the lists as the functions below want them.
void dataset_sort(struct dataset *d);
// The record of the same task or thread, CPU, vector or call; NULL: it was not
// there. An id that was given again is another task.
const struct sysinfo_cpu *dataset_cpu(const struct dataset *d, uint32_t id);
const struct sysinfo_task *dataset_task(const struct dataset *d,
                                        const struct sysinfo_task *same);
const struct sysinfo_thread *dataset_thread(const struct dataset *d,
                                            const struct sysinfo_thread *same);
const struct sysinfo_exception *dataset_exception(const struct dataset *d,
                                                  uint32_t vector);
const struct sysinfo_syscall *dataset_syscall(const struct dataset *d,
                                              uint32_t number);

// Growth of a counter; 0 if it is less than before.
uint64_t grown(uint64_t before, uint64_t now);

// Rounding so that the sum is right: the shares of consecutive parts of `whole`
// are whole units that add up to `units`, each off by less than one, and 0 for
// a part of nothing. Start with all zeros but `whole` and `units`.
struct sharing {
    uint64_t whole, units;
    uint64_t sum;   // of the parts so far
    uint64_t given; // units, to them
};
uint32_t share(struct sharing *s, uint64_t part);

// One CPU between the data sets (percentages), and since its start (cycles).
struct cpu_use {
    uint32_t id;
    uint64_t frequency, switches_per_second;
    uint32_t busy, idle, user, kernel, irq;
    uint64_t busy_total, idle_total, user_total, kernel_total, irq_total;
};
// A CPU that took no part has only idle time.
void cpu_use(const struct sysinfo_cpu *before, const struct sysinfo_cpu *now,
             uint64_t elapsed_ns, struct cpu_use *out);

// The machine between two data sets: the header's facts.
struct summary {
    uint64_t elapsed_ns; // between them; at least 1
    uint64_t hz;         // of the TSC
    uint32_t cpus;
    uint64_t capacity;     // cycles of all CPUs
    uint64_t busy;         // of these, in programs and in the kernel for them
    uint32_t busy_percent; // user and kernel of all CPUs
    uint64_t counted;      // of these, in tasks that are still there
    // Cycles of tasks that are gone, and their percentage.
    uint64_t ended_cycles;
    uint32_t ended_percent;
    uint32_t tasks;       // there are
    uint32_t created;     // since the earlier data set
    uint32_t ended;       // likewise
    uint32_t short_lived; // created and ended in between: in neither list
    uint32_t threads;
    uint32_t running, ready, sleeping, lingering, other; // of the threads
    struct cpu_use all;                                  // the CPUs' average
};
void summarize(const struct dataset *before, const struct dataset *now,
               struct summary *out);

// Events per second, rounded.
uint64_t per_second(uint64_t count, uint64_t elapsed_ns);
// Cycles as a percentage of one CPU.
uint32_t cpu_percent(const struct summary *s, uint64_t cycles);
// Gives each task's cycles their percentage. CPUs and tasks are read one after
// the other; this makes them agree: all tasks together, with ended_percent,
// have what the CPUs spent outside idle and interrupts.
struct sharing task_sharing(const struct summary *s);
