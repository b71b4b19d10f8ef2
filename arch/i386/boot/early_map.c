// Mappings on the early page tables; see early_map.h.

#include "arch/i386/boot/early_map.h"
#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/memory.h"

extern u8 early_directory[];

static u32 next = VMAP_BASE; // free from here to the end of the address space

static void set_large(u32 va, u64 paddr, u32 bits)
{
    u32 index = va / table_span() % entries_per_table();
    entry_set(early_directory + index * entry_size(),
              paddr | ENTRY_PRESENT | ENTRY_WRITE | ENTRY_LARGE | bits);
}

// Maps whole large pages. NULL: out of reach, or no space is left.
static char *map_large(u64 at, u64 end, u32 bits)
{
    u64 span = table_span();
    if (!is_addressable(at, end - at) || end - at > -next)
        return NULL;
    char *va = (char *)next;
    for (; at < end; at += span, next += (u32)span)
        set_large(next, at, bits);
    return va;
}

void early_map_image(u32 va, u64 paddr)
{
    u32 size = (u32)kernel_end - image_start();
    for (u32 at = 0; at < size; at += table_span())
        set_large(va + at, paddr + at, 0);
    tlb_flush_user();
}

// Whether some of [base, end) is hidden by the image's large pages.
static bool is_hidden_early(u64 base, u64 end)
{
    u32 hidden = ALIGN_UP((u32)kernel_end - KERNEL_BASE, IMAGE_ALIGN);
    return image_distance && base < hidden && end > IMAGE_PADDR;
}

// The address of memory that is hidden, in part at least. All of that is mapped
// once, with what is before and a large page behind it.
static void *map_hidden(u64 paddr, u64 end)
{
    static char *begin;
    u32 size = ALIGN_UP((u32)kernel_end - KERNEL_BASE, IMAGE_ALIGN);
    size += IMAGE_ALIGN;
    if (!begin)
        begin = map_large(0, size, 0);
    return begin && end <= size ? begin + paddr : NULL;
}

void *early_map(u64 paddr, u64 size, u32 bits)
{
    u64 end = paddr + size, span = table_span();
    if (!paddr || end <= paddr)
        return NULL;
    if (!bits && is_hidden_early(paddr, end))
        return map_hidden(paddr, end);
    if (!bits && end <= DIRECT_MAP_MAX)
        return phys_to_virt(paddr);
    u64 at = ALIGN_DOWN(paddr, span);
    char *va = map_large(at, ALIGN_UP(end, span), bits);
    return va ? va + (paddr - at) : NULL;
}
