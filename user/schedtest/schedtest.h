// schedtest: verifies what the scheduler promises, using the clocks and the
// kernel's ledger.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MS 1000000ull // nanoseconds
#define SECOND 1000000000ull

// Time before each measurement, in which shares converge and the scheduler
// learns which threads sleep.
#define WARM_UP_NS (500 * MS)

// --- hogs.c: CPU-bound processes ---------------------------------------------

struct hog {
    double cpu_ms; // CPU time consumed during the measurement
    int pid;
};

// Starts `count` processes, which run at once. nice[i] is the nice value of
// each; NULL: 0. users[i] is its user; NULL: the caller's.
void hogs_start(struct hog *hogs, int count, const int *nice,
                const unsigned *users);
// Begin and end a measurement. hogs_stop stores each process's CPU time, by its
// own CPU clock, and returns the elapsed time in ms.
void hogs_measure(void);
double hogs_stop(struct hog *hogs, int count);

uint64_t clock_ns(int clock);
void sleep_ns(uint64_t ns);
// Runs until this much CPU time is consumed.
void work_ns(uint64_t ns);
// Binds the calling process, and those it starts, to this CPU; -1: to all CPUs.
void bind_to_cpu(int cpu);
int cpus_online(void);

// --- tests: each prints its results; true if the promise is kept -------------

bool test_fair(int threads, int seconds);
bool test_latency(int hogs_per_cpu, int seconds);
bool test_nice(int seconds);
bool test_users(int threads, int seconds);
bool test_hide(int seconds);
