// Mappings on the early page tables, before arch_init_memory replaces them.
#pragma once

#include "lib/types.h"

// Returns the address of physical memory: in the early direct map if it is
// there, else mapped by large pages above VMAP_BASE. `bits` are bits of the
// entries, which select how memory is cached (entry.h); 0: as RAM. NULL: at
// address 0, out of the reach of the page tables, or no space is left. Only
// before arch_init_memory, on the boot CPU.
void *early_map(u64 paddr, u64 size, u32 bits);
// Maps as many bytes of memory as the kernel's image has, from `paddr` on, at
// `va`; both are multiples of a large page.
void early_map_image(u32 va, u64 paddr);
