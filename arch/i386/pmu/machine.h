// Interfaces between the kernel-side files of arch/i386/pmu.
#pragma once

#include "arch/cpu.h"
#include "arch/i386/pmu/counters.h"

extern struct pmu_cpu *pmu_cpus[CPU_MAX];
// This CPU's registers.
extern const struct pmu_io pmu_machine_io;

// Detects this CPU's counters, which are not in use, by the registers `io`, a
// struct pmu_io. (For smp_call; pmu_why_not calls it once.)
void pmu_detect_here(void *io);

static inline struct pmu_cpu *pmu_this_cpu(void)
{
    return pmu_cpus[this_cpu()->id];
}
