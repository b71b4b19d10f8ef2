// Loading of page tables, and flushing of this CPU's TLB.

#include "arch/cpu.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/registers.h"
#include "arch/mmu.h"

NOTRACE void pagetable_load(const struct pagetable *pt)
{
    __asm__ volatile("movl %0, %%cr3" ::"r"((u32)pt->paddr) : "memory");
}

NOTRACE void tlb_flush_page(u32 va)
{
    __asm__ volatile("invlpg (%0)" ::"r"(va) : "memory");
}

NOTRACE void tlb_flush_user(void)
{
    u32 cr3;
    __asm__ volatile("movl %%cr3, %0\n\t"
                     "movl %0, %%cr3"
                     : "=r"(cr3)
                     :
                     : "memory");
}

// Any change of CR4.PGE flushes everything (SDM vol. 3, 4.10.4.1).
void tlb_flush_all(void)
{
    if (!cpu_features.pge) {
        tlb_flush_user();
        return;
    }
    u32 flags = irq_save();
    u32 cr4 = read_cr4();
    write_cr4(cr4 & ~ASM_CR4_PGE);
    write_cr4(cr4);
    irq_restore(flags);
}
