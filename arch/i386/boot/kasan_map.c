// Mapping of the shadow memory of the address checker (kernel/debug/kasan.c).
//
// Compiled code writes the shadow of its stack frames from the first function
// on. Until arch_init_memory a single page is mapped at all shadow addresses:
// writes overwrite each other there, and it is never read.
#ifdef KASAN

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/registers.h"
#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/memory.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"

extern u8 early_directory[];

static u8 early_shadow[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static u8 early_table[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));

static void set(u8 *table, u32 index, bool pae, const void *target)
{
    u64 e = image_paddr(target) | ENTRY_PRESENT | ENTRY_WRITE;
    if (pae)
        ((u64 *)table)[index] = e;
    else
        ((u32 *)table)[index] = (u32)e;
}

void kasan_map_early(void)
{
    bool pae = read_cr4() & ASM_CR4_PAE;
    u32 span = pae ? MIB(2) : MIB(4), entries = pae ? 512 : 1024;
    for (u32 i = 0; i < entries; i++)
        set(early_table, i, pae, early_shadow);
    for (u32 va = KASAN_SHADOW; va < VMAP_BASE; va += span)
        set(early_directory, va / span % entries, pae, early_table);
    tlb_flush_user();
}

u64 kasan_chunk(u32 va, u32 direct_map_size)
{
    u32 covered = KERNEL_BASE + (va - KASAN_SHADOW) * 8;
    if (covered - KERNEL_BASE >= direct_map_size &&
        covered - VMAP_BASE >= VMAP_LIMIT - VMAP_BASE)
        return 0;
    u32 order = (u32)__builtin_ctz(table_span() / PAGE_SIZE);
    struct frame *f = frame_alloc(order, FRAME_LOW | FRAME_ZERO, FRAME_KERNEL);
    if (!f)
        panic("kasan: no memory for the shadow");
    return entry_make(frame_paddr(f), PROT_R | PROT_W | PROT_GLOBAL) |
           ENTRY_LARGE;
}

#endif
