// MTRRs for the framebuffer; see mtrr.h. All CPUs must have the same (SDM vol.
// 3, 12.11.8, "MTRR Considerations in MP Systems"): the boot CPU sets its own
// while no other runs, and each other sets its own before it uses the
// framebuffer.
#include "arch/i386/cpu/mtrr.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/msr.h"
#include "arch/i386/cpu/registers.h"
#include "kernel/base/log.h"
#include "lib/format.h"

#define CPUID_1_EDX_MTRR (1u << 12)

#define MSR_MTRR_CAP 0xfe
#define MSR_MTRR_BASE 0x200
#define MSR_MTRR_DEFAULT 0x2ff
#define CR0_CD (1u << 30)

static struct mtrrs chosen; // by the boot CPU

bool mtrrs_read(struct mtrrs *m)
{
    *m = (struct mtrrs){ .address = (1ull << cpu_features.physical_bits) - 1 };
    if (!(cpuid(1, 0).edx & CPUID_1_EDX_MTRR) ||
        !read_msr_safely(MSR_MTRR_CAP, &m->cap) ||
        !read_msr_safely(MSR_MTRR_DEFAULT, &m->standard))
        return false;
    m->count = MIN(MTRR_CAP_COUNT(m->cap), MTRRS_MAX);
    for (u32 i = 0; i < m->count; i++) {
        read_msr_safely(MSR_MTRR_BASE + 2 * i, &m->at[i].base);
        read_msr_safely(MSR_MTRR_BASE + 2 * i + 1, &m->at[i].mask);
    }
    return true;
}

static void flush_tlb(void)
{
    u32 cr3;
    __asm__ volatile("movl %%cr3, %0\n\tmovl %0, %%cr3" : "=r"(cr3)::"memory");
}

static void flush_caches(void)
{
    __asm__ volatile("wbinvd" ::: "memory");
}

static void write_added(const struct mtrrs *m)
{
    for (u32 i = 0; i < m->count; i++) {
        if (!(m->added & 1u << i))
            continue;
        write_msr_safely(MSR_MTRR_BASE + 2 * i, m->at[i].base);
        write_msr_safely(MSR_MTRR_BASE + 2 * i + 1, m->at[i].mask);
    }
}

// "MemTypeSet() Function" (12.11.7.2), with interrupts off: no caches, no
// global pages, no MTRRs while they are changed.
static void load(const struct mtrrs *m)
{
    u32 cr0, cr4 = cpu_features.pge ? read_cr4() : 0;
    __asm__ volatile("movl %%cr0, %0" : "=r"(cr0));
    write_cr0(cr0 | CR0_CD);
    flush_caches();
    if (cr4)
        write_cr4(cr4 & ~ASM_CR4_PGE);
    flush_tlb();
    write_msr_safely(MSR_MTRR_DEFAULT, m->standard & ~(u64)MTRR_ON);
    write_added(m);
    write_msr_safely(MSR_MTRR_DEFAULT, m->standard);
    flush_caches();
    flush_tlb();
    write_cr0(cr0);
    if (cr4)
        write_cr4(cr4);
}

void mtrr_init_cpu(void)
{
    if (chosen.added)
        load(&chosen);
}

static char state[96] = "no framebuffer";

const char *mtrr_state(void)
{
    return state;
}

static void choose(u64 base, u64 size)
{
    const char *why = "the CPU has neither PAT nor MTRRs";
    u64 done = 0;
    if (mtrrs_read(&chosen))
        done = mtrr_choose(&chosen, base, size, &why);
    if (done == size)
        format(state, sizeof(state), "write-combining by MTRR");
    else if (done)
        format(state, sizeof(state),
               "write-combining by MTRR: %u of %u KiB: %s", (u32)(done / 1024),
               (u32)(size / 1024), why);
    else
        format(state, sizeof(state), "slow, not write-combining: %s", why);
}

void mtrr_combine(u64 base, u64 size)
{
    if (cpu_features.pat) {
        format(state, sizeof(state), "write-combining by PAT");
        return;
    }
    choose(base, size);
    u32 flags = irq_save();
    mtrr_init_cpu();
    irq_restore(flags);
    log_printf("framebuffer: %s\n", state);
}
