// A check at boot for emulators that store floating-point numbers into a wrong
// page.
//
// In QEMU without KVM, from 9.1 on, an 80-bit x87 store whose first 8 bytes
// cross a page boundary writes past the end of the first page's frame instead
// of into the second page: access_ptr() in target/i386/tcg/access.c subtracts 8
// from the number of bytes left in the page, which is unsigned and may be less.
// Any program that formats a floating-point number may overwrite another frame,
// even a page table. The kernel cannot prevent that; the warning in its log
// names a possible cause of a later panic.

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"

#define BYTES_BEFORE 4u

static void map_at(u32 va, paddr_t frame)
{
    int err = pagetable_map(&kernel_pagetable, va, frame, PROT_R | PROT_W);
    assert(!err); // vmap_alloc's page table
    tlb_flush_page(va);
}

// Maps the first frame of `pair` as both pages at `va` and stores across them.
// Returns whether the store changed the second frame.
static bool stores_to_wrong_page(u32 va, const struct frame *pair)
{
    struct mapping before[2];
    for (u32 i = 0; i < 2; i++) {
        pagetable_lookup(&kernel_pagetable, va + i * PAGE_SIZE, &before[i]);
        map_at(va + i * PAGE_SIZE, frame_paddr(pair));
    }
    fpu_store_one((void *)(va + PAGE_SIZE - BYTES_BEFORE));
    for (u32 i = 0; i < 2; i++)
        map_at(va + i * PAGE_SIZE, before[i].frame);
    const u32 *behind = frame_va(pair + 1);
    return *behind;
}

void fpu_check_stores(void)
{
    if (!cpu_features.hypervisor)
        return;
    struct frame *pair = frame_alloc(1, FRAME_LOW | FRAME_ZERO, FRAME_KERNEL);
    void *at = vmap_alloc(2, PROT_R | PROT_W, FRAME_KERNEL);
    if (pair && at && stores_to_wrong_page((u32)at, pair))
        log_printf("warning: this emulator stores floating-point numbers that "
                   "cross a page into a wrong page: programs and the kernel "
                   "may break (QEMU 9.1 and later, docs/install.md)\n");
    if (at)
        vmap_free(at, 2);
    if (pair)
        frame_unref(pair);
}
