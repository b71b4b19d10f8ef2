// Start-up of a CPU: per-CPU data, descriptor tables, control registers.

#include "arch/boot.h"
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/offsets.h"
#include "arch/i386/dev/port.h"
#include "arch/i386/irq/controllers.h"
#include "arch/text.h"
#include "arch/thread.h"
#include "arch/trace_ring.h"
#include "include/strobe/abi.h"
#include "include/strobe/trace.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"
#include "kernel/time/ledger.h"
#include "lib/cpu_memory.h"
#include "lib/string.h"

_Static_assert(ASM_KERNEL_BASE == KERNEL_BASE, "offsets.h");
_Static_assert(ASM_DIRECT_MAP_MAX == DIRECT_MAP_MAX, "offsets.h");
_Static_assert(ASM_IMAGE_PADDR == IMAGE_PADDR, "offsets.h");
_Static_assert(ASM_TEXT_LINKED == KERNEL_LOAD + PAGE_SIZE, "offsets.h");
_Static_assert(ASM_IMAGE_ALIGN == IMAGE_ALIGN, "offsets.h");
_Static_assert(ASM_KSTACK_SIZE == KSTACK_SIZE, "offsets.h");
_Static_assert(ASM_KERNEL_CS == KERNEL_CS, "offsets.h");
_Static_assert(ASM_KERNEL_DS == KERNEL_DS, "offsets.h");
_Static_assert(ASM_PERCPU_SEL == PERCPU_SEL, "offsets.h");
_Static_assert(ASM_DEBUG_EXIT_PORT == DEBUG_EXIT_PORT, "offsets.h");
_Static_assert(ASM_DEBUG_EXIT_PANIC == DEBUG_EXIT_PANIC, "offsets.h");
_Static_assert(ASM_EFAULT == EFAULT, "offsets.h");
_Static_assert(offsetof(struct cpu, self) == CPU_SELF, "offsets.h");
_Static_assert(offsetof(struct cpu, thread) == CPU_THREAD, "offsets.h");
_Static_assert(offsetof(struct cpu, preempt_count) == CPU_PREEMPT_COUNT,
               "offsets.h");
_Static_assert(offsetof(struct cpu, need_resched) == CPU_NEED_RESCHED,
               "offsets.h");
_Static_assert(offsetof(struct cpu, ledger) == CPU_LEDGER, "offsets.h");
_Static_assert(offsetof(struct thread_base, user) == THREAD_USER, "offsets.h");
#define CALLS_AT(member) offsetof(struct cpu, calls.member)
_Static_assert(CALLS_AT(top) == CALLS_TOP && CALLS_AT(limit) == CALLS_LIMIT &&
                   CALLS_AT(event_limit) == CALLS_EVENT_LIMIT &&
                   CALLS_AT(clock) == CALLS_CLOCK &&
                   CALLS_AT(arcs) == CALLS_ARCS &&
                   CALLS_AT(arc_mask) == CALLS_ARC_MASK &&
                   CALLS_AT(buckets) == CALLS_BUCKETS &&
                   CALLS_AT(bucket_mask) == CALLS_BUCKET_MASK &&
                   CALLS_AT(too_deep) == CALLS_TOO_DEEP &&
                   CALLS_AT(ring) == CALLS_RING &&
                   CALLS_AT(place) == CALLS_PLACE,
               "offsets.h");
_Static_assert(offsetof(struct call_frame, mark) == FRAME_MARK &&
                   offsetof(struct call_frame, back) == FRAME_BACK &&
                   offsetof(struct call_frame, node) == FRAME_NODE &&
                   offsetof(struct call_frame, function) == FRAME_FUNCTION &&
                   offsetof(struct call_frame, start) == FRAME_START &&
                   sizeof(struct call_frame) == FRAME_SIZE,
               "offsets.h");
_Static_assert(offsetof(struct call_node, function) == NODE_FUNCTION &&
                   offsetof(struct call_node, last) == NODE_LAST &&
                   offsetof(struct call_node, calls) == NODE_CALLS &&
                   offsetof(struct call_node, own) == NODE_OWN &&
                   offsetof(struct call_node, tracing) == NODE_TRACING &&
                   offsetof(struct call_node, longest) == NODE_LONGEST &&
                   offsetof(struct call_node, shortest) == NODE_SHORTEST &&
                   offsetof(struct call_node, parent) == NODE_PARENT &&
                   offsetof(struct call_node, next) == NODE_NEXT,
               "offsets.h");
_Static_assert(offsetof(struct call_arc, from) == ARC_FROM &&
                   offsetof(struct call_arc, to) == ARC_TO &&
                   offsetof(struct call_arc, count) == ARC_COUNT &&
                   sizeof(struct call_arc) == 16,
               "offsets.h");
_Static_assert(offsetof(struct trace_place, at) == PLACE_AT &&
                   offsetof(struct trace_place, limit) == PLACE_LIMIT &&
                   offsetof(struct trace_place, epoch) == PLACE_EPOCH,
               "offsets.h");
_Static_assert(TEXT_SITE == ASM_TEXT_SITE &&
                   TRACE_TIME_BITS == ASM_TRACE_TIME_BITS &&
                   32 - TRACE_TIME_BITS == ASM_TRACE_TIME_SHIFT &&
                   TRACE_HEAD(0, TRACE_R_ENTRY, ENTRY_BYTES / 4) ==
                       ENTRY_HEAD &&
                   TRACE_HEAD(0, TRACE_R_EXIT, EXIT_BYTES / 4) == EXIT_HEAD &&
                   TRACE_HEAD(0, TRACE_R_CALL, CALL_BYTES / 4) == CALL_HEAD,
               "offsets.h");
_Static_assert(offsetof(struct trace_entry, function) == ENTRY_FUNCTION &&
                   offsetof(struct trace_entry, mark) == ENTRY_MARK &&
                   sizeof(struct trace_entry) == ENTRY_BYTES &&
                   offsetof(struct trace_return, function) == EXIT_FUNCTION &&
                   offsetof(struct trace_return, cycles) == EXIT_CYCLES &&
                   sizeof(struct trace_return) == EXIT_BYTES,
               "offsets.h");
_Static_assert(TRACE_CALL_OFFSET == TEXT_SITE &&
                   offsetof(struct trace_call, function) == CALL_FUNCTION &&
                   offsetof(struct trace_call, caller) == CALL_CALLER &&
                   sizeof(struct trace_call) == CALL_BYTES,
               "offsets.h");
_Static_assert(offsetof(struct ledger, seq) == LEDGER_SEQ &&
                   offsetof(struct ledger, subsystem) == LEDGER_SUBSYSTEM &&
                   offsetof(struct ledger, in) == LEDGER_IN &&
                   offsetof(struct ledger, user_since) == LEDGER_USER_SINCE &&
                   offsetof(struct ledger, outside) == LEDGER_OUTSIDE &&
                   LEDGER_LEAVING == ASM_LEDGER_LEAVING,
               "offsets.h");
_Static_assert(offsetof(struct trapframe, ebp) == TRAPFRAME_EBP &&
                   offsetof(struct trapframe, cs) == TRAPFRAME_CS &&
                   offsetof(struct trapframe, vector) == TRAPFRAME_VECTOR,
               "offsets.h");

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
