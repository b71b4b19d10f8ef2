// Start-up of arch/i386/mm.
#pragma once

#include "arch/cpu.h"
#include "arch/mmu.h"

// Initialises kernel_pagetable from the early page tables (boot.S). Called
// first, and again when the image has been moved.
void memory_init_boot(void);
// Where the memory map's last range below DIRECT_MAP_MAX ends, or that.
u32 direct_memory_end(void);

// Whether the direct map contains a frame.
extern u32 direct_map_size; // fixed by arch_init_memory
static ALWAYS_INLINE bool is_direct(paddr_t frame)
{
    return frame < direct_map_size;
}
// Whether page tables reach all of [base, base + size).
static inline bool is_addressable(paddr_t base, u64 size)
{
    u64 limit = paddr_limit();
    return size <= limit && base <= limit - size;
}
// The address of a CPU's window for mm/peek.c.
u32 sampler_window(u32 cpu);
// The address of the two pages by which text/text.c writes the code.
#define WINDOWS_PER_CPU 2u // of window_map
static ALWAYS_INLINE u32 text_window(void)
{
    return WINDOW_BASE + CPU_MAX * (WINDOWS_PER_CPU + 1) * PAGE_SIZE;
}

#ifdef KASAN
// boot/kasan_map.c: maps a page for early writes to the shadow. Called before
// any code compiled with checks.
void kasan_map_early(void);
// The kernel's directory entry for a chunk of the shadow.
u64 kasan_chunk(u32 va, u32 direct_map_size);
#endif
