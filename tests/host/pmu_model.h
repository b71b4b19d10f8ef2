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
    u32 eip;  // where an NMI interrupts; set by the tests
    bool user, halted;
    u32 access_cost, nmi_delay;

    bool nmi_pending, in_nmi;
    u64 nmi_time;
    void (*handler)(void); // for NMIs
    // Read by the tests.
    u64 faults, lost, nmis;
};

extern const struct model_type model_p6, model_v1, model_v2, model_v4, model_v5,
    model_k7, model_k8, model_f15, model_zen, model_zen4;

// The one model that the registers access.
extern struct model model;
extern const struct pmu_io model_io;

void model_init(const struct model_type *type);
void model_run(u64 steps);
// Delivers an NMI of another source.
void model_nmi(void);
