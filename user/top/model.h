// The computations of top: two data sets, and the differences between them.
//
// Pure: independent of the kernel and the screen (tests/host/test_top.c).
//
// Percentages are in hundredths of a percent of one CPU's capacity: 10000 are
// all cycles of a CPU between the two data sets. Those of each CPU add up to
// 10000. Those of all tasks, together with ended tasks, idle time and
// interrupts, add up to 10000 for each CPU.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strobe/sysinfo.h>

#define PERCENT_ALL 10000u // of one CPU

// Everything that was read in one refresh. Lists are ordered by id.
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

// Sorts the lists, as the functions below require.
void dataset_sort(struct dataset *d);
// Return the record of the same task, thread, CPU, vector or call, or NULL if
// there was none. A task whose id was reused is another task.
const struct sysinfo_cpu *dataset_cpu(const struct dataset *d, uint32_t id);
const struct sysinfo_task *dataset_task(const struct dataset *d,
                                        const struct sysinfo_task *same);
const struct sysinfo_thread *dataset_thread(const struct dataset *d,
                                            const struct sysinfo_thread *same);
const struct sysinfo_exception *dataset_exception(const struct dataset *d,
                                                  uint32_t vector);
const struct sysinfo_syscall *dataset_syscall(const struct dataset *d,
                                              uint32_t number);

// The increase of a counter; 0 if it has decreased.
uint64_t grown(uint64_t before, uint64_t now);

// Rounding that preserves the sum. The shares of consecutive parts of `whole`
// are integers that add up to `units`. Each is off by less than one, and 0 for
// an empty part. Initialise `whole` and `units`, and the rest to 0.
struct sharing {
    uint64_t whole, units;
    uint64_t sum;   // of the parts so far
    uint64_t given; // units given to them
};
uint32_t share(struct sharing *s, uint64_t part);

// One CPU: between the data sets (percentages), and since its start (cycles).
struct cpu_use {
    uint32_t id;
    uint64_t frequency, switches_per_second;
    uint32_t busy, idle, user, kernel, irq;
    uint64_t busy_total, idle_total, user_total, kernel_total, irq_total;
};
// A CPU whose counters did not increase is shown as idle.
void cpu_use(const struct sysinfo_cpu *before, const struct sysinfo_cpu *now,
             uint64_t elapsed_ns, struct cpu_use *out);

// The machine between two data sets, for the header.
struct summary {
    uint64_t elapsed_ns; // between them; at least 1
    uint64_t hz;         // of the TSC
    uint32_t cpus;
    uint64_t capacity;     // cycles of all CPUs
    uint64_t busy;         // of these, user and kernel time
    uint32_t busy_percent; // user and kernel of all CPUs
    uint64_t counted;      // of `busy`, in tasks that still exist
    // Cycles of tasks that have ended, and their percentage.
    uint64_t ended_cycles;
    uint32_t ended_percent;
    uint32_t tasks;       // existing now
    uint32_t created;     // between the data sets
    uint32_t ended;       // between the data sets
    uint32_t short_lived; // created and ended in between: in neither list
    uint32_t threads;
    uint32_t running, ready, sleeping, lingering, other; // numbers of threads
    struct cpu_use all;                                  // average of the CPUs
};
void summarize(const struct dataset *before, const struct dataset *now,
               struct summary *out);

// Computes events per second, rounded.
uint64_t per_second(uint64_t count, uint64_t elapsed_ns);
// Converts cycles to a percentage of one CPU.
uint32_t cpu_percent(const struct summary *s, uint64_t cycles);
// Returns the state for computing each task's percentage. CPUs and tasks are
// read one after the other; this makes their sums agree: the percentages of all
// tasks and ended_percent add up to the CPUs' time outside idle and interrupts.
struct sharing task_sharing(const struct summary *s);
