// Start-up of the clocks, on the boot CPU and on the others.
#pragma once

#include "lib/types.h"

// Starts the clock, then the event timers.
void clock_init(void);

// Sets the other CPUs' TSCs to this one's if they differ. Called on
// the boot CPU; the other CPUs, numbers 1 to cpus - 1, must call
// tsc_sync_answer repeatedly until it returns. If they cannot be set, the TSC
// is demoted as a timecounter.
void tsc_sync_check(u32 cpus);
void tsc_sync_answer(u32 cpu);
