// Performance counters without the machine: what the CPU has, how its counters
// are programmed, and what their overflows mean.
//
// Every register is reached through struct pmu_io, so the same C runs in the
// kernel on real registers and on the host on models of them (tests/host).
// Sources: Intel SDM vol. 3B, chapters 18 ("Performance Monitoring") and 19
// (events), 17.4.7 (freezing), in the numbering of edition 2016 on; AMD64 APM
// vol. 2, 13.2 ("Performance Monitoring Counters") and the PPR/BKDG of each
// family.
//
// Context: pmu_detect and everything that starts or stops a counter runs on the
// CPU that it is about, with interrupts off; pmu_overflow in an NMI at any
// instruction of those. There is one writer for each field: the comments at
// struct pmu_cpu say which.
#pragma once

#include "arch/pmu.h"

// --- the machine ------------------------------------------------------------

struct pmu_io {
    // False: the instruction raised #GP; *value is untouched.
    bool (*read)(u32 msr, u64 *value);
    bool (*write)(u32 msr, u64 value);
    void (*cpuid)(u32 leaf, u32 subleaf, u32 eax_ebx_ecx_edx[4]);
    // LVT PC of the local APIC (SDM vol. 3A, 10.5.1): deliver as NMI, unmasked.
    void (*unmask_lvt)(void);
    void (*mask_lvt)(void);
    // Executes some 10,000 instructions.
    void (*work)(void);
};

// --- what a CPU has (detect.c) ----------------------------------------------

// Counters are named by a number: the general ones from 0, the fixed-function
// ones from PMU_FIXED on. A set of them is a bit mask.
#define PMU_FIXED 16u
#define PMU_COUNTERS 19u // three fixed ones: instructions, cycles, ref-cycles
#define PMU_GENERAL_MASK 0xffffu
#define PMU_NONE PMU_COUNTERS

enum pmu_kind {
    PMU_P6,         // SDM 18.6.x "P6 family": two counters, one enable bit
    PMU_INTEL_ARCH, // SDM 18.2: CPUID leaf 0AH, version 1 to 5
    PMU_AMD,        // APM 13.2: K7 on, also with core extension, PerfMonV2
};

struct pmu_counter {
    u32 select; // MSR: what it counts
    u32 value;  // MSR: read
    u32 load;   // MSR: written
    u8 width;
    // Bits of a value that WRMSR sets; the last one is extended to `width`.
    u8 load_width;
};

struct pmu {
    const struct pmu_io *io;
    enum pmu_kind kind;
    u32 version;  // of PMU_INTEL_ARCH; PMU_AMD: 2 with PerfMonV2, else 1
    u32 family;   // CPUID's, extended
    u32 counters; // mask: those that were seen to count, and are ours
    struct pmu_counter counter[PMU_COUNTERS];
    // PMU_INTEL_ARCH: bit n set: the CPU does not have architectural event n.
    u32 missing_events;
    // MSRs of all counters together; 0: this CPU has none.
    u32 global_control, global_status, global_reset;
    u64 foreign; // bits of global_control that belong to somebody else
    u64 others;  // bits of global_status that are no counter's
};

// --- events (events.c) ------------------------------------------------------

struct pmu_code {
    u64 select;   // for a general counter: event, unit mask, modes
    u8 fixed;     // for a fixed one: modes (SDM 18.2.2, IA32_FIXED_CTR_CTRL)
    u32 counters; // mask: those that can count it
};

// NULL and *out filled, or why the CPU cannot count `e`.
const char *pmu_encode(const struct pmu *p, const struct pmu_event *e,
                       struct pmu_code *out);

// --- counters of one CPU (counter.c, overflow.c) ----------------------------

struct pmu_slot {
    u64 period;
    u64 left;   // events until the next sample is due, as of the last load
    u64 loaded; // how many of them the counter was loaded with
};

// An NMI that may still come though its reason has been dealt with
// (overflow.c).
enum pmu_owed {
    OWED_NONE,
    OWED_AT_EIP, // the next one, at the same instruction
    OWED_NEXT,
    OWED_STOPPED, // of a counter that was stopped: until it comes
};

struct pmu_cpu {
    struct pmu pmu; // constant once detected
    // Masks of counters. Written by the code that starts and stops them, read
    // in NMIs. `enabled` run; of these `sampling` interrupt.
    u32 enabled, sampling;
    // Could have overflowed without having been served: written by both sides,
    // atomically.
    u32 armed;
    // Written by the code that starts and stops; P6's is read in NMIs, whole.
    u32 select0; // P6: PerfEvtSel0 without its enable bit
    u32 fixed_control;
    // In NMIs only, while the counter is in `sampling`.
    struct pmu_slot slot[PMU_COUNTERS];
    // An NMI may still come whose reason has been dealt with: see overflow.c.
    u32 owed; // enum pmu_owed
    u32 owed_eip;
    u32 repeated; // NMIs that were owed, and came
};

// Finds out what this CPU has by trying it, and fills c->pmu. NULL, or why
// there is nothing to use. Changes only registers that nobody uses (detect.c).
const char *pmu_detect(struct pmu_cpu *c, const struct pmu_io *io);

// A free counter (not enabled) of `allowed`, or PMU_NONE: fixed ones first,
// then from above, for the lower ones are those that few events can use.
u32 pmu_choose(const struct pmu_cpu *c, u32 allowed);
// Programs counter `n` and lets it run from 0. It does not interrupt.
void pmu_count_start(struct pmu_cpu *c, u32 n, const struct pmu_code *code);
// Programs counter `n` to interrupt after each `period` (>= 1) events.
void pmu_sample_start(struct pmu_cpu *c, u32 n, const struct pmu_code *code,
                      u64 period);
// Stops counter `n`, of either use.
void pmu_stop(struct pmu_cpu *c, u32 n);

// What counter `n` reads: of its width.
u64 pmu_read(const struct pmu *p, u32 n);
// The largest number of events that a counter can be loaded to overflow after.
u64 pmu_load_max(const struct pmu_counter *c);
// Loads counter `n` with what is left of its period, or as much as it can take.
void pmu_load(struct pmu_cpu *c, u32 n);
// Writes minus `events`.
bool pmu_write(const struct pmu *p, u32 n, u64 events);
// Their bits in the registers of all counters together.
u64 pmu_global_bits(u32 counters);
// Lets all enabled counters run, or none, where the CPU can at once.
void pmu_gate(const struct pmu_cpu *c, bool open);

// Called for each sample due: counter `n` has passed `weight` periods. Returns
// the next period, or 0 for the same again.
typedef u64 (*pmu_sample_fn)(void *arg, u32 n, u32 weight);

// An NMI has come, having interrupted `eip`. True: it was a counter's.
bool pmu_overflow(struct pmu_cpu *c, u32 eip, pmu_sample_fn sample, void *arg);
// Which counters of `among` have overflowed. Acknowledges them, where that is
// to be done.
u32 pmu_take_overflows(const struct pmu_cpu *c, u32 among);

// --- more events than counters (multiplex.c) --------------------------------

// A set of events that are counted on one CPU. Stretches of time may lie
// between pmu_group_in and pmu_group_out; each pass may put other events on
// counters, so that all get their turn.
struct pmu_group {
    u32 events; // how many
    u32 first;  // which of them chooses a counter first
    struct pmu_code code[PMU_GROUP_EVENTS];
    u8 counter[PMU_GROUP_EVENTS]; // PMU_NONE: not now
    u64 start[PMU_GROUP_EVENTS];  // what the counter read at the last look
    u64 since;                    // TSC, of the last look
    // Stretches may be short: events change at the beginning of one when so
    // much time has passed in them since they changed last.
    u64 turn, turned; // TSC cycles; turn 0: only by pmu_group_rotate
    struct pmu_count count[PMU_GROUP_EVENTS];
};

void pmu_group_in(struct pmu_cpu *c, struct pmu_group *g, u64 now);
// Adds what was counted since the last look: needed before a counter goes
// round, which takes a minute at least (2^39 events).
void pmu_group_look(struct pmu_cpu *c, struct pmu_group *g, u64 now);
void pmu_group_out(struct pmu_cpu *c, struct pmu_group *g, u64 now);
// Other events' turn: between in and out.
void pmu_group_rotate(struct pmu_cpu *c, struct pmu_group *g, u64 now);
