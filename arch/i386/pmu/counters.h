// Machine-independent core of the performance counters: what the CPU has, how
// its counters are programmed, and what their overflows mean.
//
// Every register is accessed through struct pmu_io, so the same C runs in the
// kernel on real registers and on the host on models of them (tests/host).
// Sources: Intel SDM vol. 3B, chapters 18 ("Performance Monitoring") and 19
// (events), 17.4.7 (freezing), in the numbering of edition 2016 on, and of
// later editions what they add (version 6, leaf 23H); AMD64 APM vol. 2, 13.2
// ("Performance Monitoring Counters") and the PPR/BKDG of each family.
//
// Context: pmu_detect and everything that starts or stops a counter runs on the
// counter's CPU, with interrupts off; pmu_overflow runs in an NMI, which may
// interrupt those at any instruction. The comments at struct pmu_cpu name each
// field's writer.
#pragma once

#include "arch/i386/pmu/registers.h"
#include "arch/pmu.h"

// --- the machine ------------------------------------------------------------

struct pmu_io {
    // False: the instruction raised #GP; *value is unchanged.
    bool (*read)(u32 msr, u64 *value);
    bool (*write)(u32 msr, u64 value);
    // The same for a register that has been tried: few instructions.
    u64 (*get)(u32 msr);
    void (*set)(u64 value, u32 msr);
    void (*cpuid)(u32 leaf, u32 subleaf, u32 eax_ebx_ecx_edx[4]);
    // LVT PC of the local APIC (SDM vol. 3A, 10.5.1): unmask for NMI delivery,
    // and mask.
    void (*unmask_lvt)(void);
    void (*mask_lvt)(void);
    // Executes about 10,000 instructions.
    void (*work)(void);
};

// --- what a CPU has (describe.c, detect.c) ----------------------------------

// A counter is identified by a number: general ones from 0, fixed-function ones
// from PMU_FIXED on. A set of counters is a bit mask.
#define PMU_FIXED 16u
// Four fixed ones: instructions, cycles, ref-cycles, slots. (Version 6 may have
// more, for parts of the slots: not used.)
#define PMU_COUNTERS 20u
#define PMU_GENERAL_MASK 0xffffu
#define PMU_NONE PMU_COUNTERS

enum pmu_kind {
    PMU_P6,         // SDM 18.6.x "P6 family": two counters, one enable bit
    PMU_INTEL_ARCH, // SDM 18.2: CPUID leaf 0AH, version 1 to 6
    PMU_AMD,        // APM 13.2: K7 on, also with core extension, PerfMonV2
};

// CPUs whose events beyond the common ones are known (models.c).
enum pmu_model {
    PMU_MODEL_UNKNOWN,
    PMU_SKYLAKE,
    PMU_ICE_LAKE,
    PMU_GOLDEN_COVE,
    PMU_GRACEMONT,
    PMU_CRESTMONT,
    PMU_ZEN2,
    PMU_ZEN3,
    PMU_ZEN4,
};

// CPUID leaf 1AH: the kinds of a hybrid processor.
enum pmu_core { PMU_CORE_ONLY, PMU_CORE_PERFORMANCE, PMU_CORE_EFFICIENCY };

struct pmu_counter {
    u32 select; // MSR: event select
    u32 value;  // MSR: the counter
    u8 width;
};

struct pmu {
    const struct pmu_io *io;
    enum pmu_kind kind;
    u32 version; // of PMU_INTEL_ARCH; PMU_AMD: 2 with PerfMonV2, else 1
    u32 family;  // CPUID's, extended
    enum pmu_model model;
    enum pmu_core core;
    u32 counters; // mask of those seen to count and available to us
    u32 taken; // mask of those that firmware, microcode or another agent uses
    // NULL, or why the counters can count but not interrupt.
    const char *no_interrupts;
    struct pmu_counter counter[PMU_COUNTERS];
    // PMU_INTEL_ARCH: bit n is set if the CPU lacks architectural event n.
    u32 missing_events;
    // Global MSRs, for all counters; 0: this CPU has none.
    u32 global_control, global_status, global_reset;
    u64 other_status; // bits of global_status that belong to no counter
};

// Fills in what CPUID says, p->counters included. NULL, or why there can be no
// counters. p->io is set.
const char *pmu_describe(struct pmu *p);
// What this CPU's interface is called.
const char *pmu_interface_name(const struct pmu *p);

// --- models (models.c) ------------------------------------------------------

// Sets p->model and p->core, by p->family. `max_leaf`: CPUID's.
void pmu_identify(struct pmu *p, u32 max_leaf, u32 model);
const char *pmu_model_name(const struct pmu *p);
// The event select of an event that has no common code, without modes; 0: this
// CPU has no such event. *counters: reduced to those that can count it.
u64 pmu_model_select(const struct pmu *p, enum pmu_event_id id, u32 *counters);

// --- events (events.c) ------------------------------------------------------

struct pmu_code {
    u64 select;   // for a general counter: event, unit mask, modes
    u8 fixed;     // for a fixed one: modes (SDM 18.2.2, IA32_FIXED_CTR_CTRL)
    u32 counters; // mask of the counters that can count it
};

// NULL and *out filled, or why the CPU cannot count `e`.
const char *pmu_encode(const struct pmu *p, const struct pmu_event *e,
                       struct pmu_code *out);
// Number of the names that the CPU counts.
u32 pmu_event_count(const struct pmu *p);

// --- counters of one CPU (counter.c, overflow.c) ----------------------------

struct pmu_slot {
    struct pmu_sampling *user; // while the counter interrupts
    u32 value;                 // MSR: the counter
    u32 sign;                  // the sign bit in its upper half
    u64 status;                // its bit in the global MSRs
    // With fewer events than this after the overflow, exactly one period is
    // over. 0: a longer one goes on.
    u32 limit;
    u64 period;
    // Events until the next sample is due, behind those that the counter has
    // been loaded with: a long period takes several loads.
    u64 rest;
};
// WRMSR sets 32 bits of most counters, and extends the sign (SDM 18.2.5).
#define PMU_LOAD_MAX 0x7fffffffu

// An owed NMI: it may still arrive although its overflow has been served
// (overflow.c).
enum pmu_owed {
    OWED_NONE,
    OWED_AT_EIP, // the next NMI, if it is at the same instruction
    OWED_NEXT,
    OWED_STOPPED, // of a stopped counter: pending until it arrives
};

struct pmu_cpu {
    struct pmu pmu; // constant after detection, as the next four
    // Of pmu.io, for NMIs: each saves an instruction.
    u64 (*get)(u32 msr);
    void (*set)(u64 value, u32 msr);
    void (*unmask_lvt)(void);
    bool (*overflow)(struct pmu_cpu *c, const struct trapframe *tf, u32 eip);
    // What follows up to `slot` is written by the code that starts and stops.
    // Masks of counters: `enabled` ones run; those in `sampling`, read in NMIs,
    // interrupt, or may have an unserved overflow.
    u32 enabled, sampling;
    u64 fixed_control;
    // The gate: an MSR that lets all enabled counters run, or none; 0: this CPU
    // has none. NMIs read its values, which is safe as a change is in one half
    // of them only. Closed: the bits of counters that are not ours; P6:
    // PerfEvtSel0 without its enable bit.
    u32 gate;
    u64 closed, open;
    // Accessed in NMIs only, while the counter is in `sampling`.
    struct pmu_slot slot[PMU_COUNTERS];
    // State of the owed NMI: see overflow.c.
    u32 owed; // enum pmu_owed
    u32 owed_eip;
    u32 repeated; // number of owed NMIs that have arrived
};

// Detects this CPU's counters by trying them, and fills c->pmu. NULL, or why
// none can be used. Changes only registers that are not in use (detect.c).
const char *pmu_detect(struct pmu_cpu *c, const struct pmu_io *io);
// NULL if all `count` CPUs can count `e`, or why not: that of a CPU, or which
// kind of CPU lacks it.
const char *pmu_lacks(struct pmu_cpu *const *cpus, u32 count,
                      const struct pmu_event *e);

// A free counter (not enabled) of `allowed`, or PMU_NONE. Fixed ones first,
// then the highest, since some events can use the low ones only.
u32 pmu_choose(const struct pmu_cpu *c, u32 allowed);
// Programs counter `n` and starts it at 0. It does not interrupt.
void pmu_count_start(struct pmu_cpu *c, u32 n, const struct pmu_code *code);
// Programs counter `n` to interrupt after each `period` (>= 1) events. Its slot
// has its user.
void pmu_sample_start(struct pmu_cpu *c, u32 n, const struct pmu_code *code,
                      u64 period);
// Stops counter `n`, of either kind.
void pmu_stop(struct pmu_cpu *c, u32 n);

// Writes minus `events` to counter `n`.
bool pmu_write(const struct pmu *p, u32 n, u64 events);

// Counters have more than 32 bits: the sign bit in the upper half of a value.
static ALWAYS_INLINE u32 pmu_sign(const struct pmu_counter *c)
{
    return 1u << (c->width - 33);
}

// The value of counter `n`, of its width.
static ALWAYS_INLINE u64 pmu_read(const struct pmu *p, u32 n)
{
    u64 value = p->io->get(p->counter[n].value);
    return (u64)((u32)(value >> 32) & (2 * pmu_sign(&p->counter[n]) - 1))
               << 32 |
           (u32)value;
}

// Loads the counter of `s` for the next `events`, 1 to PMU_LOAD_MAX.
static ALWAYS_INLINE void pmu_load(const struct pmu_cpu *c,
                                   const struct pmu_slot *s, u32 events)
{
    c->set((u64)(2 * s->sign - 1) << 32 | -events, s->value);
}
// Loads it for the `left` events to come of its period, or a part of them.
void pmu_load_period(const struct pmu_cpu *c, struct pmu_slot *s, u64 left);

// The bits of these counters in the global MSRs.
static ALWAYS_INLINE u64 pmu_global_bits(u32 counters)
{
    _Static_assert(PMU_FIXED == 16, "fixed counters in the upper half");
    return (counters & PMU_GENERAL_MASK) | (u64)(counters >> PMU_FIXED) << 32;
}

// The counters of these bits; bits of no counter are ignored.
static ALWAYS_INLINE u32 pmu_of_global_bits(u64 bits)
{
    u32 fixed = (u32)(bits >> 32) & ((1u << (PMU_COUNTERS - PMU_FIXED)) - 1);
    return ((u32)bits & PMU_GENERAL_MASK) | fixed << PMU_FIXED;
}

static ALWAYS_INLINE void pmu_gate(const struct pmu_cpu *c, bool open)
{
    if (c->gate)
        c->set(open ? c->open : c->closed, c->gate);
}

// Handles an NMI that interrupted `eip`: calls `due` of each counter's user.
// True: it was a counter's.
static ALWAYS_INLINE bool pmu_overflow(struct pmu_cpu *c,
                                       const struct trapframe *tf, u32 eip)
{
    return c->overflow(c, tf, eip);
}
void pmu_set_handler(struct pmu_cpu *c); // part of detection
// Returns the counters of `among` that have overflowed, and acknowledges them
// where the CPU needs that.
u32 pmu_take_overflows(const struct pmu_cpu *c, u32 among);

// --- more events than counters (multiplex.c) --------------------------------

// A set of events counted on one CPU, in the intervals between pmu_group_in and
// pmu_group_out. If they are more than the counters, each interval may assign
// the counters to other events, so that all events get a turn.
struct pmu_group {
    u32 events; // number of events
    // Indices of the event that chooses its counter first, now and in the next
    // turn: then it is the first one that has no counter now.
    u32 first, next;
    u32 turns; // until now
    struct pmu_code code[PMU_GROUP_EVENTS];
    u8 counter[PMU_GROUP_EVENTS]; // PMU_NONE: not counted now
    u64 start[PMU_GROUP_EVENTS];  // the counter's value at the last read
    u64 since;                    // TSC at the last read
    // Intervals may be short: events change at the start of one once this much
    // time has passed in intervals since the last change.
    u64 turn, turned; // TSC cycles; turn 0: only by pmu_group_rotate
    struct pmu_count count[PMU_GROUP_EVENTS];
    struct pmu_part part[PMU_GROUP_EVENTS][PMU_PARTS];
};

void pmu_group_in(struct pmu_cpu *c, struct pmu_group *g, u64 now);
// Adds the counts since the last read. To be called before a counter wraps,
// which takes at least a minute (2^39 events).
void pmu_group_update(struct pmu_cpu *c, struct pmu_group *g, u64 now);
void pmu_group_out(struct pmu_cpu *c, struct pmu_group *g, u64 now);
// Switches to the next events: called between in and out.
void pmu_group_rotate(struct pmu_cpu *c, struct pmu_group *g, u64 now);
