// Machine checks: errors that the hardware detects (SDM vol. 3B, ch. 15).
#pragma once

#include "arch/trap.h"

// Enables machine checks on the calling CPU, if CPUID reports support for them.
// Logs what the error banks have kept from before the last reset. Interrupts
// off, exceptions set up, log_printf works.
void machine_check_init_cpu(void);
// The exception's handler: reports the error banks of all CPUs, and panics.
NORETURN void machine_check(const struct trapframe *tf);
