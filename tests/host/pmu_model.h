// Models of performance monitoring units, written from the manuals and not from
// the driver. Reserved bits and unknown registers fault.
//
// In each step the one CPU executes one instruction in one cycle. Every 4th
// refers to the cache and every 16th misses it, every 5th is a branch, every
// 50th mispredicted. Each register access takes `access_cost` steps, so that
// counters overflow and NMIs strike in the middle of the driver's work.
#pragma once

#include "arch/i386/pmu/counters.h"

enum model_kind { MODEL_P6, MODEL_INTEL, MODEL_AMD };

#define MODEL_GENERAL 16
#define MODEL_FIXED 7

// An event that only some models have: event select without modes and enable
// bits. low: in the first four counters only.
struct model_event {
    u64 select;
    u32 divisor; // steps per event
    bool low;
};

struct model_type {
    const char *name;
    enum model_kind kind;
    u32 version; // Intel: CPUID.0AH; AMD: 2 has PerfMonV2
    u32 family, model;
    u32 general, fixed, width;
    bool full_write; // Intel: IA32_A_PMCx
    bool extended;   // AMD: C001_0200 on
    bool freezes;    // AMD: CPUID.80000022H:EAX[2]
    u32 missing;     // Intel: CPUID.0AH:EBX
    u32 core_type;   // CPUID.1AH:EAX[31:24] of a hybrid processor
    u32 gaps;        // general counters below `general` that do not exist
    // CPUID.0AH of a hybrid processor: what all its cores have. 0: as above.
    u32 common_general, common_fixed;
    bool leaf_23h;
    bool transactions; // their use changes counter 3
    bool old_numbers;  // version 6 without the registers from 1900H on
    const struct model_event *events; // ends with an empty one
};

enum model_lie { LIE_NONE, LIE_FAULT, LIE_ZERO, LIE_STILL };

struct model {
    struct model_type type;
    enum model_lie lie;
    u64 select[MODEL_GENERAL], general[MODEL_GENERAL];
    u64 fixed[MODEL_FIXED], fixed_control;
    u64 global_control, status, debugctl, force_abort;
    bool lvt_masked;
    u64 time; // steps
    u32 eip;  // where an NMI interrupts; set by the tests
    bool user, halted;
    u32 access_cost, nmi_delay;

    bool nmi_pending, in_nmi;
    u64 nmi_time;
    void (*handler)(void); // for NMIs
    // Read by the tests.
    u64 faults, lost, nmis;
};

extern const struct model_type model_p6, model_v1, model_v2, model_v3, model_v4,
    model_v5, model_big, model_small, model_v6, model_v6_big, model_k7,
    model_k8, model_f15, model_zen, model_zen2, model_zen3, model_zen4;

// The one model that the registers access.
extern struct model model;
extern const struct pmu_io model_io;

void model_init(const struct model_type *type);
void model_run(u64 steps);
// Delivers an NMI of another source, and one that is due.
void model_nmi(void);
void model_deliver(void);

// Of the current type (pmu_model_types.c, pmu_model_registers.c).
void model_cpuid(u32 leaf, u32 subleaf, u32 r[4]);
bool model_read(u32 msr, u64 *value);
bool model_write(u32 msr, u64 value);
bool model_is_amd(void);
bool model_has_global(void);
// Freezing sets a status bit, and leaves the global control.
bool model_streamlined(void);
u32 model_general_mask(void);
u64 model_width_mask(void);

#define MODEL_EN (1ull << 22)
#define MODEL_INT (1ull << 20)
#define MODEL_OS (1ull << 17)
#define MODEL_USR (1ull << 16)
#define MODEL_FREEZE (1ull << 12)
#define MODEL_CTR_FRZ (1ull << 59)
