// Models of performance monitoring units, written from the manuals and not from
// the driver, as strict as those are: reserved bits and unknown registers
// fault.
//
// One CPU executes one instruction in one cycle. Every 4th refers to the cache
// and every 16th misses it, every 5th is a branch, every 50th mispredicted.
// Each register access takes `access_cost` such steps, so that counters
// overflow in the middle of the driver's work, and NMIs strike there.
#pragma once

#include "arch/i386/pmu/counters.h"

enum model_kind { MODEL_P6, MODEL_INTEL, MODEL_AMD };

struct model_type {
    const char *name;
    enum model_kind kind;
    u32 version; // Intel: CPUID.0AH; AMD: 2 has PerfMonV2
    u32 family, model;
    u32 general, fixed, width;
    bool full_write; // Intel: IA32_A_PMCx
    bool extended;   // AMD: C001_0200 on
    u32 missing;     // Intel: CPUID.0AH:EBX
};

enum model_lie { LIE_NONE, LIE_FAULT, LIE_ZERO, LIE_STILL };

struct model {
    struct model_type type;
    enum model_lie lie;
    u64 select[16], general[16], fixed[3], fixed_control;
    u64 global_control, status, debugctl;
    bool lvt_masked;
    u64 time; // steps
    u32 eip;  // what an NMI interrupts; tests change it
    bool user, halted;
    u32 access_cost, nmi_delay;

    bool nmi_pending, in_nmi;
    u64 nmi_time;
    void (*handler)(void); // of NMIs
    // For the tests to look at.
    u64 faults, lost, nmis;
};

extern const struct model_type model_p6, model_v1, model_v2, model_v4, model_v5,
    model_k7, model_k8, model_f15, model_zen, model_zen4;

// There is one model at a time.
extern struct model model;
extern const struct pmu_io model_io;

void model_init(const struct model_type *type);
void model_run(u64 steps);
// An NMI of somebody else's.
void model_nmi(void);
