// Performance counters: events, sampling and counting.
//
// What this CPU's counters are called, how many there are and how they are
// programmed is known to arch/i386/pmu only.
#pragma once

#include "lib/types.h"

struct trapframe;

// --- events -----------------------------------------------------------------

enum pmu_event_id {
    PMU_CYCLES, // while not halted
    PMU_INSTRUCTIONS,
    PMU_REF_CYCLES, // while not halted, of a clock that does not change
    PMU_CACHE_REFERENCES,
    PMU_CACHE_MISSES,
    PMU_BRANCHES,
    PMU_BRANCH_MISSES,
    PMU_RAW,
};

struct pmu_event {
    enum pmu_event_id id;
    u16 select; // PMU_RAW: the event's number (8 bits; AMD: 12) in the manual
    u8 mask;    // PMU_RAW: its unit mask
    bool user, kernel; // where it is counted; at least one
};

// "cycles", "instructions", "ref-cycles", "cache-references", "cache-misses",
// "branches", "branch-misses", or rNNMM, rNNNMM (hexadecimal: event number,
// unit mask); then :u, :k, or both, or nothing, which means both. 0 or -EINVAL.
// Any context.
int pmu_event_parse(const char *text, struct pmu_event *out);

// --- counts -----------------------------------------------------------------

#define PMU_GROUP_EVENTS 16 // most that are counted together

struct pmu_count {
    u64 value;
    // TSC ticks: for how long it was wanted, and for how long it had a counter.
    // value * enabled / running estimates the whole; 0 running: not counted.
    u64 enabled, running;
};

// --- the machine's counters -------------------------------------------------

// NULL, or why nothing can be counted. Tries the counters of all CPUs the first
// time: thread context that may sleep, here and below where nothing else is
// said; not before the other CPUs are up.
const char *pmu_why_not(void);
// The same for sampling, which also needs interrupts.
const char *pmu_sampling_why_not(void);
// NULL, or why a CPU cannot count `e`. After pmu_why_not has returned NULL.
const char *pmu_event_why_not(const struct pmu_event *e);

// --- sampling ---------------------------------------------------------------

// Samples by one event; several run at once, each on a counter of its own. The
// user's, who fills in the first part and changes nothing of it while it runs.
struct pmu_sampling {
    struct pmu_event event;
    u64 period; // events, >= 1
    // Called in NMI context, on each CPU: `tf` was interrupted after `periods`
    // periods (>= 1) of the length that was set last. Returns the length of the
    // next, in events (>= 1).
    u64 (*due)(struct pmu_sampling *s, const struct trapframe *tf, u32 periods);

    bool incomplete; // a CPU had no counter free
};

// Interrupts every CPU after each period of the event that it counts. It does
// not run yet. 0, -EBUSY (counters or NMIs are in use), -EINVAL (a CPU cannot
// count the event), -ENODEV.
int pmu_sampling_start(struct pmu_sampling *s);
// After it `due` does not run.
void pmu_sampling_stop(struct pmu_sampling *s);

// --- counting ---------------------------------------------------------------

// Events counted in those stretches of time, on each CPU, that lie between
// pmu_counting_in and pmu_counting_out. When they are more than the counters
// they take turns.
struct pmu_counting;

// `count` events, 1 to PMU_GROUP_EVENTS. 0, -EINVAL, -ENODEV, -ENOMEM.
int pmu_counting_create(const struct pmu_event *events, u32 count,
                        struct pmu_counting **out);
// It is in on no CPU.
void pmu_counting_destroy(struct pmu_counting *c);
// This CPU; interrupts off; not in NMIs.
void pmu_counting_in(struct pmu_counting *c);
void pmu_counting_out(struct pmu_counting *c);
// The next events' turn, where it is in; often enough (10 ms), and at least
// once a minute, for a counter to have gone round not more than once. This CPU;
// interrupts off.
void pmu_counting_turn(struct pmu_counting *c);
// What each event has come to until now, on all CPUs.
void pmu_counting_read(struct pmu_counting *c, struct pmu_count *counts);
