// Machine checks: errors that the hardware has found (SDM vol. 3B, ch. 15).
#pragma once

#include "arch/trap.h"

// The calling CPU reports them from here on, where CPUID says that it can. What
// it has kept from before the last reset goes to the log. Interrupts off, the
// exceptions set up, log_printf works.
void machine_check_init_cpu(void);
// The exception: reports what the banks of all CPUs say, and panics.
NORETURN void machine_check(const struct trapframe *tf);
