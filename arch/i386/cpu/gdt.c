// Descriptor tables: each CPU's GDT with its task state segments, and the IDT,
// which all CPUs share.
//
// A GDT and its TSS are written by their own CPU only. The double fault handler
// is a separate task: an overflowed kernel stack cannot hold a frame, so the
// CPU must switch stacks before it stores anything.

#include "arch/i386/cpu/arch_cpu.h"

#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "lib/string.h"

// Descriptor bits (SDM vol. 3, 3.4.5). "Accessed" is set from the start, so
// that the CPU never writes to the table.
#define ACCESS_CODE 0x9b
#define ACCESS_DATA 0x93
#define ACCESS_TSS 0x89
#define ACCESS_USER 0x60
#define FLAG_32BIT 0x4
#define FLAG_PAGES 0x8 // limit in pages
#define LIMIT_4G 0xfffff

#define GATE_INTERRUPT 0x8e00u // clears IF
#define GATE_TASK 0x8500u
#define GATE_USER 0x6000u // user mode may raise it by INT

#define IDT_ENTRIES 256
#define TRAP_STUB_SIZE 16
#define VECTOR_BREAK 3
#define VECTOR_OVERFLOW 4

// entry.S
extern u8 trap_stubs[], syscall_entry_point[], nmi_entry_point[];
extern u8 double_fault_entry_point[];

static u64 idt[IDT_ENTRIES];

static u64 descriptor(u32 base, u32 limit, u32 access, u32 flags)
{
    u32 low = (limit & 0xffff) | base << 16;
    u32 high = (base >> 16 & 0xff) | access << 8 | (limit & 0xf0000) |
               flags << 20 | (base & 0xff000000);
    return (u64)high << 32 | low;
}

static void gdt_load(struct arch_cpu *a)
{
    struct {
        u16 limit;
        u32 base;
    } PACKED table = { sizeof(a->gdt) - 1, (u32)a->gdt };
    __asm__ volatile("lgdt %0\n\t"
                     "ljmp %1, $1f\n"
                     "1:\tmovl %2, %%ds\n\t"
                     "movl %2, %%es\n\t"
                     "movl %2, %%ss\n\t"
                     "movl %3, %%fs\n\t"
                     "movl %4, %%gs\n\t"
                     "lldt %w4"
                     :
                     : "m"(table), "i"(KERNEL_CS), "r"(KERNEL_DS),
                       "r"(PERCPU_SEL), "r"(0)
                     : "memory");
}

NOTRACE void gdt_init(struct cpu *cpu)
{
    struct arch_cpu *a = cpu->arch;
    u32 flat = FLAG_32BIT | FLAG_PAGES;
    memset(a->gdt, 0, sizeof(a->gdt));
    a->gdt[KERNEL_CS / 8] = descriptor(0, LIMIT_4G, ACCESS_CODE, flat);
    a->gdt[KERNEL_DS / 8] = descriptor(0, LIMIT_4G, ACCESS_DATA, flat);
    a->gdt[USER_CS / 8] =
        descriptor(0, LIMIT_4G, ACCESS_CODE | ACCESS_USER, flat);
    a->gdt[USER_DS / 8] =
        descriptor(0, LIMIT_4G, ACCESS_DATA | ACCESS_USER, flat);
    a->gdt[PERCPU_SEL / 8] =
        descriptor((u32)cpu, sizeof(*cpu) - 1, ACCESS_DATA, FLAG_32BIT);
    a->gdt[CPU_NUMBER_SEL / 8] =
        descriptor(0, cpu->id, ACCESS_DATA | ACCESS_USER, FLAG_32BIT);
    a->gdt[TSS_SEL / 8] =
        descriptor((u32)&a->tss, sizeof(struct tss) - 1, ACCESS_TSS, 0);
    a->gdt[DOUBLE_FAULT_SEL / 8] = descriptor(
        (u32)&a->double_fault_tss, sizeof(struct tss) - 1, ACCESS_TSS, 0);
    gdt_load(a);
}

static void tss_init(struct arch_cpu *a)
{
    memset(&a->tss, 0, sizeof(a->tss));
    a->tss.ss0 = KERNEL_DS;
    a->tss.io_map = sizeof(struct tss); // beyond the limit: users get no ports

    struct tss *t = &a->double_fault_tss;
    memset(t, 0, sizeof(*t));
    t->cr3 = (u32)kernel_pagetable.paddr;
    t->eip = (u32)double_fault_entry_point;
    t->esp = (u32)(a->double_fault_stack + DOUBLE_FAULT_STACK);
    t->eflags = 2; // bit 1 is always set; interrupts stay off
    t->cs = KERNEL_CS;
    t->ss = t->ds = t->es = KERNEL_DS;
    t->fs = PERCPU_SEL;
    t->io_map = sizeof(struct tss);
}

void idt_load(struct cpu *cpu)
{
    struct {
        u16 limit;
        u32 base;
    } PACKED table = { sizeof(idt) - 1, (u32)idt };
    struct arch_cpu *a = cpu->arch;
    // LTR marks the TSS busy, and refuses a busy one.
    tss_init(a);
    a->gdt[TSS_SEL / 8] =
        descriptor((u32)&a->tss, sizeof(struct tss) - 1, ACCESS_TSS, 0);
    __asm__ volatile("ltr %w0" ::"r"(TSS_SEL));
    __asm__ volatile("lidt %0" ::"m"(table));
}

static void set_gate(u32 vector, const u8 *entry, u32 type)
{
    assert(vector < 256 && entry);
    u32 to = (u32)entry;
    u32 low = (to & 0xffff) | KERNEL_CS << 16;
    u32 high = (to & 0xffff0000) | type;
    idt[vector] = (u64)high << 32 | low;
}

void idt_init(void)
{
    for (u32 v = 0; v < IDT_ENTRIES; v++)
        set_gate(v, trap_stubs + v * TRAP_STUB_SIZE, GATE_INTERRUPT);
    set_gate(VECTOR_NMI, nmi_entry_point, GATE_INTERRUPT);
    set_gate(VECTOR_BREAK, trap_stubs + VECTOR_BREAK * TRAP_STUB_SIZE,
             GATE_INTERRUPT | GATE_USER);
    set_gate(VECTOR_OVERFLOW, trap_stubs + VECTOR_OVERFLOW * TRAP_STUB_SIZE,
             GATE_INTERRUPT | GATE_USER);
    // An interrupt gate, although system calls run with interrupts on: entry.S
    // first switches the ledger to kernel time.
    set_gate(VECTOR_SYSCALL, syscall_entry_point, GATE_INTERRUPT | GATE_USER);
    idt[VECTOR_DOUBLE_FAULT] =
        (u64)GATE_TASK << 32 | ((u32)DOUBLE_FAULT_SEL << 16);
}
