// schedtest: shows what the scheduler promises, by what the clocks and the
// kernel's ledger say.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MS 1000000ull // nanoseconds
#define SECOND 1000000000ull

// Before each measurement: shares settle, and the scheduler has seen who
// sleeps.
#define WARM_UP_NS (500 * MS)

// --- hogs.c: processes that want a CPU all the time --------------------------

struct hog {
    double cpu_ms; // CPU time it had while it was measured
    int pid;
};

// Starts `count` of them; nice[i] for each, NULL: 0. They run at once.
void hogs_start(struct hog *hogs, int count, const int *nice);
// What they had between the two calls stands in the hogs after the second, by
// their own CPU clocks. Returns the time between, in ms.
void hogs_measure(void);
double hogs_stop(struct hog *hogs, int count);

uint64_t clock_ns(int clock);
void sleep_ns(uint64_t ns);
// Keeps a CPU busy for this much CPU time.
void work_ns(uint64_t ns);
// The calling process, and those it starts, run on this CPU only; -1: on all.
void bind_to_cpu(int cpu);
int cpus_online(void);

// --- the tests: each prints what it finds; true if the promise is kept
// --------

bool test_fair(int threads, int seconds);
bool test_latency(int hogs_per_cpu, int seconds);
bool test_nice(int seconds);
bool test_hide(int seconds);
