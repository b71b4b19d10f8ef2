// Write-combining by MTRRs, for the framebuffer of a CPU without PAT (Pentium
// Pro, Pentium II).
#pragma once

#include "arch/i386/cpu/mtrr_choose.h"

// This CPU's. False: it has none.
bool mtrrs_read(struct mtrrs *m);
// Before the other CPUs start: makes an area write-combining on this CPU, and
// on each that calls mtrr_init_cpu later. Logs what cannot be.
void mtrr_combine(u64 base, u64 size);
void mtrr_init_cpu(void);
const char *mtrr_state(void); // of the framebuffer
