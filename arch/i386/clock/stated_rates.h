// The TSC's rate as the processor and a hypervisor state it.
#pragma once

#include "arch/i386/clock/calibration_vote.h"
#include "arch/i386/cpu/core_clock.h"

#define STATED_RATES 2 // the processor's, the hypervisor's

// 0 Hz: none. The names are for the log.
void stated_rates(const struct core_clock_io *io, struct vote votes[]);
extern const char *const stated_by[STATED_RATES];
