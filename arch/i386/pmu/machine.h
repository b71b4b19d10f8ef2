// Interfaces between the kernel-side files of arch/i386/pmu.
#pragma once

#include "arch/cpu.h"
#include "arch/i386/pmu/counters.h"

extern struct pmu_cpu *pmu_cpus[CPU_MAX];
// This CPU's registers.
extern const struct pmu_io pmu_machine_io;

static inline struct pmu_cpu *pmu_this_cpu(void)
{
    return pmu_cpus[this_cpu()->id];
}
