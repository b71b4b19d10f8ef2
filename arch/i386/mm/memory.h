// Start-up of arch/i386/mm.
#pragma once

#include "lib/types.h"

// Takes the early page tables (boot.S) for kernel_pagetable. First of all.
void memory_init_boot(void);

#ifdef KASAN
// boot/kasan_map.c: a place for what is written to the shadow before there is
// one; before any compiled code with checks.
void kasan_map_early(void);
// The kernel's directory entry for a chunk of the shadow.
u64 kasan_chunk(u32 va, u32 direct_map_size);
#endif
