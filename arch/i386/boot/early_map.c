// Mappings on the early page tables; see early_map.h.

#include "arch/i386/boot/early_map.h"
#include "arch/i386/mm/entry.h"

extern u8 early_directory[];

static u32 next = VMAP_BASE; // free from here to the end of the address space

void *early_map(u64 paddr, u64 size, u32 bits)
{
    u64 end = paddr + size, span = table_span();
    if (!paddr || end <= paddr)
        return NULL;
    if (!bits && end <= DIRECT_MAP_MAX)
        return phys_to_virt(paddr);
    u64 at = ALIGN_DOWN(paddr, span);
    if ((!mmu_pae && end > 1ull << 32) || end > ENTRY_FRAME ||
        ALIGN_UP(end, span) - at > -next)
        return NULL;
    char *va = (char *)next + (paddr - at);
    for (; at < end; at += span, next += (u32)span) {
        u32 index = next / (u32)span % entries_per_table();
        entry_set(early_directory + index * entry_size(),
                  at | ENTRY_PRESENT | ENTRY_WRITE | ENTRY_LARGE | bits);
    }
    return va;
}
