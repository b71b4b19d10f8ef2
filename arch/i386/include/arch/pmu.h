// Performance counters: events, sampling and counting.
//
// Names, number and programming of a CPU's counters are private to
// arch/i386/pmu.
#pragma once

#include "lib/types.h"

struct trapframe;

// --- events -----------------------------------------------------------------

// With perf's names. The first part exists on most CPUs, the second on the
// models that are known (docs/counters.md).
#define PMU_EVENTS(E)                                    \
    E(CYCLES, "cycles") /* not halted */                 \
    E(INSTRUCTIONS, "instructions")                      \
    E(REF_CYCLES, "ref-cycles") /* of a constant rate */ \
    E(CACHE_REFERENCES, "cache-references")              \
    E(CACHE_MISSES, "cache-misses")                      \
    E(BRANCHES, "branches")                              \
    E(BRANCH_MISSES, "branch-misses")                    \
    E(BUS_CYCLES, "bus-cycles")                          \
    E(SLOTS, "slots")                                    \
    E(STALLED_FRONTEND, "stalled-cycles-frontend")       \
    E(STALLED_BACKEND, "stalled-cycles-backend")         \
    E(L1D_LOADS, "L1-dcache-loads")                      \
    E(L1D_LOAD_MISSES, "L1-dcache-load-misses")          \
    E(L1D_STORES, "L1-dcache-stores")                    \
    E(L1I_MISSES, "L1-icache-load-misses")               \
    E(LLC_LOADS, "LLC-loads")                            \
    E(LLC_LOAD_MISSES, "LLC-load-misses")                \
    E(DTLB_LOAD_MISSES, "dTLB-load-misses")              \
    E(DTLB_STORE_MISSES, "dTLB-store-misses")            \
    E(ITLB_MISSES, "iTLB-load-misses")

enum pmu_event_id {
#define PMU_EVENT_ID(upper, name) PMU_##upper,
    PMU_EVENTS(PMU_EVENT_ID)
#undef PMU_EVENT_ID
        PMU_RAW,
};

struct pmu_event {
    enum pmu_event_id id;
    u16 select; // PMU_RAW: the event's number (8 bits; AMD: 12) in the manual
    u8 mask;    // PMU_RAW: its unit mask
    bool user, kernel; // modes to count in; at least one
};

// A name of PMU_EVENTS, or rNNMM, rNNNMM (hexadecimal: event number, unit
// mask); then :u, :k, or both, or nothing, which means both. 0 or -EINVAL. Any
// context.
int pmu_event_parse(const char *text, struct pmu_event *out);
// The name of an event before PMU_RAW.
const char *pmu_event_name(enum pmu_event_id id);

// --- counts -----------------------------------------------------------------

#define PMU_GROUP_EVENTS 16 // maximum in one group

struct pmu_count {
    u64 value;
    // TSC ticks during which the event was wanted, and during which it had a
    // counter. value * enabled / running estimates the full count; running ==
    // 0: not counted.
    u64 enabled, running;
};

// The turns of a multiplexed event go to these parts in rotation, so that their
// differences show how much the turns differ. A prime number above that of the
// events: each event's turns reach all parts.
#define PMU_PARTS 17
struct pmu_part {
    u64 value, running;
};

// --- the machine's counters -------------------------------------------------

// NULL, or why nothing can be counted. The first call tries the counters of all
// CPUs. Thread context that may sleep, here and below unless stated otherwise;
// only once the other CPUs are up.
const char *pmu_why_not(void);
// The same for sampling, which also needs interrupts.
const char *pmu_sampling_why_not(void);
// NULL, or why a CPU cannot count `e`. After pmu_why_not has returned NULL.
const char *pmu_event_why_not(const struct pmu_event *e);

// What one CPU has. Hybrid processors have CPUs of two kinds.
struct pmu_info {
    const char *why_not;       // NULL: its counters are used
    const char *no_interrupts; // NULL: and can sample
    const char *interface, *model;
    u32 general, fixed; // number of counters to use
    u32 taken;          // in use by the firmware or another agent
    u32 width;          // bits, of the widest
    u32 events;         // names that it counts
};

// Tries the counters first, as pmu_why_not. `cpu` < cpu_count.
void pmu_info(u32 cpu, struct pmu_info *out);

// --- sampling ---------------------------------------------------------------

// A sampling session by one event; several may run at once, each on its own
// counter. The caller fills in the first part, and must not change it while the
// session runs.
struct pmu_sampling {
    struct pmu_event event;
    u64 period; // events, >= 1
    // Called in NMI context, on each CPU: `tf` was interrupted after `periods`
    // periods (>= 1) of the length set last. Returns the length of the next
    // period, in events (>= 1).
    u64 (*due)(struct pmu_sampling *s, const struct trapframe *tf, u32 periods);

    bool incomplete; // a CPU had no free counter
};

// Interrupts every CPU after each period of the events that it counts. `s` must
// not be running. 0, -EBUSY (counters or NMIs are in use), -EINVAL (a CPU
// cannot count the event), -ENODEV.
int pmu_sampling_start(struct pmu_sampling *s);
// When it returns, `due` does not run any more.
void pmu_sampling_stop(struct pmu_sampling *s);

// --- counting ---------------------------------------------------------------

// A set of events counted, on each CPU, during the intervals between
// pmu_counting_in and pmu_counting_out. If there are more events than counters,
// they are multiplexed.
struct pmu_counting;

// `count` events, 1 to PMU_GROUP_EVENTS. 0, -EINVAL, -ENODEV, -ENOMEM.
int pmu_counting_create(const struct pmu_event *events, u32 count,
                        struct pmu_counting **out);
// `c` must not be in on any CPU.
void pmu_counting_destroy(struct pmu_counting *c);
// This CPU; interrupts off; not in NMIs.
void pmu_counting_in(struct pmu_counting *c);
void pmu_counting_out(struct pmu_counting *c);
// Gives the counters to the next events if the set is in on this CPU. To be
// called at least once a minute, so that no counter wraps twice between two
// reads. True: there are more events than counters, and each turn should be
// PMU_TURN_NS. This CPU; interrupts off.
#define PMU_TURN_NS (NSEC_PER_SEC / 1000)
bool pmu_counting_turn(struct pmu_counting *c);
// Reads each event's count until now, summed over all CPUs.
void pmu_counting_read(struct pmu_counting *c, struct pmu_count *counts);
// The same of this CPU alone. Interrupts off; the set is in.
void pmu_counting_read_here(struct pmu_counting *c, struct pmu_count *counts);
// The parts of one event's count over all CPUs, as pmu_counting_read read it
// last.
void pmu_counting_parts(const struct pmu_counting *c, u32 event,
                        struct pmu_part parts[PMU_PARTS]);
// Whether each event has a counter of its own here, so that nothing is
// estimated. This CPU; interrupts off; the set is in.
bool pmu_counting_is_exact(struct pmu_counting *c);
