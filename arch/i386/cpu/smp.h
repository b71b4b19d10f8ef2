// Interface between the start of CPUs (smp.c) and calls among them
// (smp_call.c).
#pragma once

#include "lib/types.h"

// From now on `cpu` receives calls; it answers once its interrupts are on.
void smp_call_join(u32 cpu);
