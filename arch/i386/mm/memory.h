// Start-up of arch/i386/mm.
#pragma once

// Takes the early page tables (boot.S) for kernel_pagetable. First of all.
void memory_init_boot(void);
