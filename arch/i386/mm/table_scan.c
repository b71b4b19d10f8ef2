// The frames that page tables refer to, for the leak check: by physical
// addresses, which no other structure uses.
//
// Read without locks: the caller prevents changes.
#ifdef CHECKED

#include "arch/i386/mm/entry.h"

void pagetable_scan(const void *table, void (*fn)(paddr_t frame))
{
    u32 size = mmu_pae ? 8 : 4;
    for (u32 i = 0; i < entries_per_table(); i++) {
        u64 e = entry_read((const char *)table + i * size);
        if (entry_used(e) && !(e & ENTRY_LARGE))
            fn(e & ENTRY_FRAME);
    }
}

void pagetable_scan_kernel(void (*fn)(paddr_t table))
{
    u32 va = KERNEL_BASE;
    do { // up to the end of the address space
        const void *entry = leaf_entry(&kernel_pagetable, va);
        if (entry)
            fn(virt_to_phys(entry) & ~(paddr_t)(PAGE_SIZE - 1));
        va += table_span();
    } while (va);
    if (!mmu_pae) {
        fn(kernel_pagetable.paddr);
        return;
    }
    const u64 *pointers = kernel_pagetable.root;
    fn(pointers[KERNEL_BASE >> 30] & ENTRY_FRAME);
}

#endif
