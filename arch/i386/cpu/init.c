// Start-up of a CPU: per-CPU data, descriptor tables, control registers.

#include "arch/boot.h"
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/registers.h"
#include "arch/i386/dev/port.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/log.h"
#include "kernel/time/ledger.h"
#include "lib/cpu_memory.h"
#include "lib/string.h"

#define I8259_MASTER_MASK 0x21
#define I8259_SLAVE_MASK 0xa1

struct cpu *cpus[CPU_MAX];
CPU_MEMORY(cpus, 1);
u32 cpu_count = 1;

static struct arch_cpu boot_arch;

// A site to patch with CLAC or STAC if the CPU has SMAP (asm.inc).
struct smap_site {
    u8 *at;
    u32 opcode; // 3 bytes
};
extern struct smap_site smap_sites_start[], smap_sites_end[];

void cpu_init_boot(void)
{
    extern char boot_stack_top[];
    LINKER_SET_FOR_EACH(const struct cpu_memory, m, cpu_memory)
        (*m)->of_cpu[0] = (*m)->of_boot_cpu;
    struct cpu *cpu = cpus[0];
    cpu->self = cpu;
    cpu->set_bit = cpu_set_bit(0);
    cpu->arch = &boot_arch;
    cpu->irq_counts = irq_counts[0];
    cpu->ledger = &ledger_none;
    cpu->idle_stack_top = boot_stack_top;
    cpu->online = true;
    gdt_init(cpu);
}

// The page attribute table (SDM vol. 3, 11.12): as after reset, but with
// write-combining at index 1 (PWT alone), which is write-through after reset
// and which nothing else uses. Without PAT such pages are written through, or
// combined by an MTRR (mtrr.h): PWT alone does not change its type (12.5.2.1,
// "Selecting Memory Types for Pentium Pro and Pentium II Processors").
#define MSR_PAT 0x277
#define PAT_WC 1ull
#define PAT_WB 6ull
#define PAT_UC_MINUS 7ull
#define PAT_LOW (PAT_WB | PAT_WC << 8 | PAT_UC_MINUS << 16) // index 3: UC, 0

void cpu_init_control(void)
{
    const struct cpu_features *f = &cpu_features;
    u32 cr0 = ASM_CR0_PG | ASM_CR0_PE | ASM_CR0_AM | ASM_CR0_WP | ASM_CR0_NE |
              ASM_CR0_MP;
    u32 cr4 = ASM_CR4_PSE | (f->pae ? ASM_CR4_PAE : 0);
    cr4 |= f->pge ? ASM_CR4_PGE : 0;
    cr4 |= f->fxsr ? ASM_CR4_OSFXSR : 0;
    cr4 |= f->sse ? ASM_CR4_OSXMMEXCPT : 0;
    cr4 |= f->smep ? ASM_CR4_SMEP : 0;
    cr4 |= f->smap ? ASM_CR4_SMAP : 0;
    cr4 |= f->umip ? ASM_CR4_UMIP : 0;
    // CD and NW are clear in cr0: caches on. TS is set: each thread's first use
    // of the FPU raises #NM.
    this_cpu()->arch->cr0 = cr0;
    write_cr0(cr0 | ASM_CR0_TS);
    if (f->nx)
        write_msr(ASM_MSR_EFER, read_msr(ASM_MSR_EFER) | ASM_EFER_NXE);
    write_cr4(cr4);
    if (f->pat)
        write_msr(MSR_PAT, PAT_LOW | PAT_LOW << 32);
}

// The early page tables still map the code writable.
static void patch_smap_sites(void)
{
    for (struct smap_site *s = smap_sites_start; s < smap_sites_end; s++)
        memcpy(s->at, &s->opcode, 3);
    cpuid(0, 0); // serialising: discards instructions fetched before
}

// A timer tick that arrived while the loader had interrupts off is still
// pending. It must be withdrawn while the local APIC passes the 8259's line
// through (virtual wire): QEMU keeps one that is withdrawn later, and then
// delivers a vector that does not exist.
static void silence_8259(void)
{
    out8(I8259_MASTER_MASK, 0xff);
    out8(I8259_SLAVE_MASK, 0xff);
}

void arch_init_early(void)
{
    silence_8259();
    features_detect();
    idt_init();
    idt_load(this_cpu());
    if (cpu_features.smap)
        patch_smap_sites();
    cpu_init_control();
    fpu_init();
}

NOTRACE void cpu_halt_forever(void)
{
    for (;;)
        __asm__ volatile("cli; hlt");
}
