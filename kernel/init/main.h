// Start-up order.
#pragma once

#include "lib/types.h"

// From arch/i386/boot: paging on, boot_info filled, on the boot stack.
NORETURN void kernel_main(void);
// From arch: an application processor is up, on its own idle stack, this_cpu()
// works, its LAPIC is set up; it never returns.
NORETURN void cpu_main(void);
// The trap code for exceptions (arch/i386/cpu/trap.c) is arch's; it calls
// aspace_fault, signal_fault, panic_trap, irq_dispatch, syscall_dispatch.
