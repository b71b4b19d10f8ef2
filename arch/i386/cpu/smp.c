// Starting the other CPUs.
//
// One INIT and STARTUP to all wakes the application processors; each finds its
// slot in a table by its APIC id. When all have arrived, or none has for a long
// time, the boot CPU hands out stacks in the order of the firmware's table; a
// slot whose CPU has not arrived is marked to sleep. So a late CPU runs nothing
// but the trampoline, however late it is, and CPU numbers have no gaps. CPUs
// that are not used stay halted there; no NMIs are sent to them.

#include "arch/i386/cpu/smp.h"
#include "arch/boot.h"
#include "arch/clock.h"
#include "arch/i386/boot/boot_fill.h"
#include "arch/i386/clock/clock_start.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/machine_check.h"
#include "arch/i386/cpu/mtrr.h"
#include "arch/i386/cpu/registers.h"
#include "arch/i386/cpu/thermal.h"
#include "arch/i386/cpu/topology.h"
#include "arch/i386/cpu/trampoline.h"
#include "arch/i386/irq/apic.h"
#include "arch/mmu.h"
#include "arch/thread.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/time/ledger.h"
#include "lib/cpu_memory.h"
#include "lib/string.h"

KERNEL_ARG(maxcpus, "maxcpus=N: use no more than N CPUs");

// SDM vol. 3, 9.4.4.
#define INIT_WAIT (10 * NSEC_PER_MSEC)
#define STARTUP_WAIT (200 * NSEC_PER_USEC)
// Real CPUs answer within a millisecond. In a virtual machine those that have
// arrived compute while they wait: on a few loaded CPUs of the host, hundreds
// of them may keep the last one from its turn for seconds. There the wait is
// repeated while CPUs arrive.
#define ARRIVAL_WAIT (1 * NSEC_PER_SEC)
#define ARRIVAL_WAIT_VIRTUAL (10 * NSEC_PER_SEC)
#define ONLINE_WAIT (20 * NSEC_PER_SEC)

#define FRAMES_KEPT (MIB(2) / PAGE_SIZE) // free; CPUs do not take these

extern const u8 trampoline_start[], trampoline_end[];
extern const u8 trampoline_data_start[];

static struct trampoline_data *data; // in the trampoline page
static struct ap_slot *slots;        // of the expected CPUs but this one

static u32 found_cpus(void)
{
    return apic_present ? acpi_cpu_count : 1;
}

u32 smp_cpus_expected(void)
{
    u32 limit = CPU_MAX;
    kernel_arg_number(&arg_maxcpus, &limit);
    return MIN(found_cpus(), MAX(limit, 1u));
}

// Waits until `done(arg)` is true or `ns` have passed; false: timed out.
static bool wait_until(bool (*done)(u32 arg), u32 arg, u64 ns)
{
    u64 ticks = clock_tsc_hz() / 1000000 * (ns / NSEC_PER_USEC);
    u64 start = rdtsc();
    while (!done(arg)) {
        if (rdtsc() - start > ticks)
            return false;
        cpu_relax();
    }
    return true;
}

static bool never(u32 arg UNUSED)
{
    return false;
}

static u32 missing_of(u32 n)
{
    u32 missing = 0;
    for (u32 i = 0; i < n; i++)
        missing += !READ_ONCE(slots[i].arrived);
    return missing;
}

static bool all_arrived(u32 n)
{
    return !missing_of(n);
}

static bool cpu_is_up(u32 id)
{
    return READ_ONCE(cpus[id]->arch->up);
}

// Memory that is zero and directly mapped, or NULL.
static void *cpu_frames(u32 bytes)
{
    u32 order = 0;
    while (PAGE_SIZE << order < bytes)
        order++;
    struct frame *f = frame_alloc(order, FRAME_LOW | FRAME_ZERO, FRAME_KERNEL);
    return f ? frame_va(f) : NULL;
}

// The APs' first page tables: the kernel's, plus the identity-mapped
// trampoline.
static int prepare_trampoline(struct pagetable *pt, u32 others)
{
    int err = pagetable_create(pt);
    if (err)
        return err;
    slots = cpu_frames(others * sizeof(*slots));
    if (!slots) {
        pagetable_destroy(pt);
        return -ENOMEM;
    }
    err = pagetable_map(pt, boot_info.start_page, boot_info.start_page,
                        PROT_R | PROT_X);
    if (err) {
        pagetable_destroy(pt);
        return err;
    }
    u8 *page = phys_to_virt(boot_info.start_page);
    memcpy(page, trampoline_start, (size_t)(trampoline_end - trampoline_start));
    data = (void *)(page + (trampoline_data_start - trampoline_start));
    data->cr3 = (u32)pt->paddr;
    data->cr4_halted = cpu_features.mce ? ASM_CR4_MCE : 0;
    data->cr4 = ASM_CR4_PSE | (cpu_features.pae ? ASM_CR4_PAE : 0);
    data->efer = cpu_features.nx ? ASM_EFER_NXE : 0;
    data->slot_count = others;
    data->slots = (u32)virt_to_phys(slots);
    for (u32 i = 0; i < others; i++)
        slots[i].apic_id = acpi_cpu_apic_ids[i + 1];
    return 0;
}

// Waits until all have arrived, or, in a virtual machine, none has for
// ARRIVAL_WAIT_VIRTUAL.
static void wait_for_arrivals(u32 others)
{
    if (wait_until(all_arrived, others, ARRIVAL_WAIT) ||
        !cpu_features.hypervisor)
        return;
    u32 missing = missing_of(others), before;
    log_printf("smp: waiting for %u CPUs\n", missing);
    do {
        before = missing;
        wait_until(all_arrived, others, ARRIVAL_WAIT_VIRTUAL);
        missing = missing_of(others);
    } while (missing && missing < before);
}

static void wake_all(u32 others)
{
    lapic_send_init();
    wait_until(never, 0, INIT_WAIT);
    lapic_send_startup((u8)(boot_info.start_page >> PAGE_SHIFT));
    if (wait_until(all_arrived, others, STARTUP_WAIT))
        return;
    lapic_send_startup((u8)(boot_info.start_page >> PAGE_SHIFT));
    wait_for_arrivals(others);
}

static u32 place(u32 *used, u32 size)
{
    u32 at = ALIGN_UP(*used, CPU_MEMORY_ALIGN);
    *used = at + size;
    return at;
}

// Lays out the memory of a CPU in one block: struct arch_cpu, then what
// CPU_MEMORY has registered. Returns its size. With `block` not NULL the
// pointers to its parts are set.
static u32 lay_out(u32 id, char *block)
{
    u32 used = sizeof(struct arch_cpu);
    LINKER_SET_FOR_EACH(const struct cpu_memory, m, cpu_memory) {
        u32 at = place(&used, (*m)->size);
        if (block)
            (*m)->of_cpu[id] = block + at;
    }
    return used;
}

// Memory for CPU `id`: its private structures and its idle stack.
static bool prepare_cpu(u32 id, u32 apic_id)
{
    char *block =
        frames_free() < FRAMES_KEPT ? NULL : cpu_frames(lay_out(id, NULL));
    if (!block)
        return false;
    char *stack = kstack_alloc();
    if (!stack) {
        frame_unref(frame_from_va(block));
        return false;
    }
    lay_out(id, block);
    struct cpu *c = cpus[id];
    c->self = c;
    c->id = id;
    c->set_word = cpu_set_word(id);
    c->set_bit = cpu_set_bit(id);
    c->apic_id = apic_id;
    c->arch = (struct arch_cpu *)block;
    c->irq_counts = irq_counts[id];
    c->ledger = &ledger_none;
    c->idle_stack_top = stack + KSTACK_SIZE;
    frame_init_cpu(c);
    return true;
}

static void dismiss(struct ap_slot *slot, const char *why)
{
    log_printf("smp: the CPU with APIC id %u %s\n", slot->apic_id, why);
    WRITE_ONCE(slot->stack, AP_STACK_DISMISS);
}

// Releases the CPUs that have arrived. Returns the number of CPUs, including
// this one.
static u32 release(u32 others)
{
    u32 count = 1;
    for (u32 i = 0; i < others; i++) {
        struct ap_slot *slot = &slots[i];
        if (!READ_ONCE(slot->arrived)) {
            dismiss(slot, "does not answer");
        } else if (!prepare_cpu(count, slot->apic_id)) {
            dismiss(slot, "is not used: there is too little memory");
        } else {
            slot->cpu = cpus[count];
            barrier(); // x86 keeps the order of stores
            WRITE_ONCE(slot->stack, (u32)cpus[count]->idle_stack_top);
            count++;
        }
    }
    return count;
}

// Released CPUs run kernel code, so they come up; if one does not, the machine
// is unusable.
static void wait_for_all(u32 count)
{
    for (u32 id = 1; id < count; id++) {
        if (!wait_until(cpu_is_up, id, ONLINE_WAIT))
            panic("smp: CPU %u is lost on its way up", id);
    }
}

void smp_start(void)
{
    smp_call_init();
    u32 wanted = smp_cpus_expected(), others = wanted - 1;
    if (found_cpus() > wanted)
        log_printf("smp: %u of %u CPUs used (maxcpus)\n", wanted, found_cpus());
    if (!others)
        return;
    if (!boot_info.start_page) {
        log_printf("smp: one CPU of %u: no page below 640 KiB is free for the "
                   "others to start in\n",
                   wanted);
        return;
    }
    if (boot_info.start_page != START_PAGE)
        log_printf("smp: the other CPUs start at %#x\n", boot_info.start_page);
    struct pagetable pt;
    if (prepare_trampoline(&pt, others)) {
        log_printf("smp: no memory to start other CPUs\n");
        return;
    }
    cpu_set_words = DIV_ROUND_UP(wanted, CPU_SET_WORD_BITS);
    wake_all(others);
    u32 count = release(others);
    wait_for_all(count);
    tsc_sync_check(count);
    cpu_count = count;
    for (u32 id = 1; id < count; id++)
        WRITE_ONCE(cpus[id]->online, true);
    pagetable_destroy(&pt); // no CPU runs in the trampoline with paging on
    log_printf("smp: %u CPUs\n", count);
}

// Called by trampoline.S on the idle stack, with interrupts off.
NORETURN void ap_main(struct cpu *cpu);
NOTRACE void ap_main(struct cpu *cpu)
{
    pagetable_load(&kernel_pagetable);
    gdt_init(cpu);
    idt_load(cpu);
    cpu_init_control();
    mtrr_init_cpu();
    machine_check_init_cpu();
    tlb_flush_all();
    lapic_init_cpu();
    thermal_init_cpu();
    topology_init_cpu();
    lapic_timer_init_cpu();
    WRITE_ONCE(cpu->arch->up, true);
    while (!READ_ONCE(cpu->online)) {
        tsc_sync_answer(cpu->id);
        cpu_relax();
    }
    tlb_flush_all(); // shootdowns before `online` did not include this CPU
    smp_call_join(cpu->id);
    cpu_main();
}
