// What one CPU says about its clock: its registers are accessed through struct
// core_clock_io, so the same code runs on the host (tests/host).
#pragma once

#include <strobe/core_clock.h>

#include "lib/types.h"

#define MSR_MPERF 0xe7u
#define MSR_APERF 0xe8u

struct core_clock_io {
    // False: the instruction raised #GP; *value is unchanged.
    bool (*read)(u32 msr, u64 *value);
    void (*cpuid)(u32 leaf, u32 subleaf, u32 eax_ebx_ecx_edx[4]);
};

// Fills in what this CPU reports: rates, TSC, turbo. Returns whether it has
// APERF and MPERF.
bool core_clock_of_cpu(const struct core_clock_io *io,
                       struct strobe_core_clock *out);
// Adds what another CPU reports to `out`: where they differ the less certain
// one remains, and the higher maximum.
void core_clock_combine(struct strobe_core_clock *out,
                        const struct strobe_core_clock *other);
