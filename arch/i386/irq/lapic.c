// The local APIC of each CPU (SDM vol. 3, chapter 11).
//
// Each CPU accesses its own registers: in xAPIC mode in memory, at the same
// address on all CPUs, in x2APIC mode as MSRs (11.12). So no lock is needed. In
// xAPIC mode ICR is two registers: interrupts are off between the writes.
//
// x2APIC mode is used where the firmware has locked it, where there are APIC
// ids that xAPIC mode cannot address, and on request: devices' interrupts,
// whose destinations have 8 bits, then go to the boot CPU only.
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/registers.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/debug/fault.h"
#include "lib/string.h"

KERNEL_ARG(apic,
           "apic=x2apic: the local APICs in x2APIC mode, where they have it");

enum { // register offsets, SDM table 11-1
    LAPIC_ID = ASM_LAPIC_ID,
    LAPIC_VERSION = 0x30,
    LAPIC_TPR = 0x80,
    LAPIC_EOI = 0xb0,
    LAPIC_LDR = 0xd0,
    LAPIC_DFR = 0xe0,
    LAPIC_SVR = 0xf0,
    LAPIC_ISR = 0x100, // 8 registers, 0x10 apart
    LAPIC_IRR = 0x200,
    LAPIC_ICR_LOW = 0x300, // in x2APIC mode: of 64 bits
    LAPIC_ICR_HIGH = 0x310,
    LAPIC_LVT_TIMER = 0x320,
    LAPIC_LVT_THERMAL = 0x330,
    LAPIC_LVT_PERF = 0x340, // performance counters
    LAPIC_LVT_LINT0 = 0x350,
    LAPIC_LVT_LINT1 = 0x360,
    LAPIC_LVT_ERROR = 0x370,
    LAPIC_INITIAL_COUNT = 0x380,
    LAPIC_CURRENT_COUNT = 0x390,
    LAPIC_DIVIDE = 0x3e0,
};

#define VERSION_LAST_LVT(v) ((v) >> 16 & 0xff)
#define LAST_LVT_THERMAL 5u // of six, the last one to come

#define SVR_ENABLE (1u << 8)
#define LVT_MASKED (1u << 16)
#define LVT_DELIVERY (7u << 8)
#define LVT_SMI (2u << 8)
#define LVT_NMI (4u << 8)
#define LVT_EXTINT (7u << 8)
#define DIVIDE_BY_1 0xbu

#define ICR_FIXED (0u << 8)
#define ICR_NMI DELIVERY_NMI
#define ICR_INIT (5u << 8)
#define ICR_STARTUP (6u << 8)
#define ICR_PENDING (1u << 12)
#define ICR_ASSERT (1u << 14)
#define ICR_SELF (1u << 18)
#define ICR_ALL_BUT_SELF (3u << 18)

#define MSR_X2APIC(reg) (0x800u + (reg) / 0x10) // SDM table 11-6
#define APIC_BASE_ENABLE (1u << 11)
#define APIC_BASE_ADDRESS 0x000ffffffffff000ull // SDM vol. 3A, 11.4.4

// SDM vol. 4, table 2-2: an MSR, whose existence another MSR reports, says
// whether x2APIC mode can be left.
#define LEAF_EXTENDED_FEATURES 7
#define HAS_ARCH_CAPABILITIES (1u << 29) // edx
#define MSR_ARCH_CAPABILITIES 0x10au
#define HAS_XAPIC_DISABLE_STATUS (1u << 21)
#define MSR_XAPIC_DISABLE_STATUS 0xbdu
#define LEGACY_XAPIC_DISABLED (1u << 0)

// A send takes a few bus cycles; the limit guards against broken hardware.
#define ICR_SPINS 1000000u

bool apic_present;
bool apic_x2apic;

static volatile u32 *registers;

static ALWAYS_INLINE u32 lapic_read(u32 reg)
{
    return apic_x2apic ? (u32)read_msr(MSR_X2APIC(reg)) : registers[reg / 4];
}

static ALWAYS_INLINE void lapic_write(u32 reg, u32 value)
{
    if (apic_x2apic)
        write_msr(MSR_X2APIC(reg), value);
    else
        registers[reg / 4] = value;
}

int lapic_map(paddr_t said)
{
    paddr_t base = read_msr(ASM_MSR_APIC_BASE) & APIC_BASE_ADDRESS;
    if (said && said != base)
        log_printf("warning: the firmware's tables have the local APICs at "
                   "%#llx: used at %#llx, by IA32_APIC_BASE\n",
                   said, base);
    registers = map_device(base, PAGE_SIZE);
    if (!registers)
        return -ENOMEM;
    apic_present = true;
    return 0;
}

// Not CPUID's field of leaf 1, which came with the Pentium 4 (SDM vol. 2A,
// CPUID), and which firmware may change in the register only. In xAPIC mode
// that has 8 bits; leaf 0BH reports a larger id. trampoline.S does the same for
// the other CPUs.
u32 lapic_first_id(void)
{
    if (read_msr(ASM_MSR_APIC_BASE) & ASM_APIC_BASE_X2APIC)
        return (u32)read_msr(ASM_MSR_X2APIC_ID);
    if (cpuid(0, 0).eax >= ASM_LEAF_TOPOLOGY) {
        struct cpuid id = cpuid(ASM_LEAF_TOPOLOGY, 0);
        bool is_there = id.ebx & 0xffff; // the number of logical processors
        if (is_there && id.edx > ASM_XAPIC_ID_MAX)
            return id.edx;
    }
    return registers[ASM_LAPIC_ID / 4] >> 24;
}

static bool locked_in_x2apic_mode(void)
{
    return cpuid(0, 0).eax >= LEAF_EXTENDED_FEATURES &&
           cpuid(LEAF_EXTENDED_FEATURES, 0).edx & HAS_ARCH_CAPABILITIES &&
           read_msr(MSR_ARCH_CAPABILITIES) & HAS_XAPIC_DISABLE_STATUS &&
           read_msr(MSR_XAPIC_DISABLE_STATUS) & LEGACY_XAPIC_DISABLED;
}

// On the boot CPU, for all.
static void choose_mode(void)
{
    u64 base = read_msr(ASM_MSR_APIC_BASE);
    const char *why = NULL;
    if (arg_apic.present && strcmp(arg_apic.value, "x2apic") != 0) {
        log_printf("irq: apic=%s: only x2apic is known\n", arg_apic.value);
        arg_apic.present = false;
    }
    if (base & ASM_APIC_BASE_X2APIC && locked_in_x2apic_mode())
        why = "the firmware has locked it";
    else if (arg_apic.present && cpu_features.x2apic)
        why = "apic=x2apic";
    else if (cpus_need_x2apic())
        why = "there are APIC ids above 254";
    apic_x2apic = why;
    if (why)
        log_printf("irq: LAPIC in x2APIC mode: %s\n", why);
    else if (arg_apic.present)
        log_printf("irq: apic=x2apic: the CPU has no x2APIC mode\n");
}

// Firmware may have disabled the APIC, or set the other mode. x2APIC mode is
// left by way of the disabled state only, and entered from xAPIC mode (SDM
// vol. 3, figure 11-26).
static void enter_mode(void)
{
    u64 base = read_msr(ASM_MSR_APIC_BASE);
    if (base & ASM_APIC_BASE_X2APIC && !apic_x2apic) {
        base &= ~(u64)(ASM_APIC_BASE_X2APIC | APIC_BASE_ENABLE);
        write_msr(ASM_MSR_APIC_BASE, base);
    }
    if (!(base & APIC_BASE_ENABLE))
        write_msr(ASM_MSR_APIC_BASE, base | APIC_BASE_ENABLE);
    if (apic_x2apic && !(base & ASM_APIC_BASE_X2APIC))
        write_msr(ASM_MSR_APIC_BASE,
                  base | APIC_BASE_ENABLE | ASM_APIC_BASE_X2APIC);
}

// Interrupts that firmware left in service would block lower priorities for
// ever.
static void drop_in_service(void)
{
    for (u32 i = 0; i < 256; i++) {
        bool any = false;
        for (u32 n = 0; n < 8; n++)
            any |= lapic_read(LAPIC_ISR + 0x10 * n) != 0;
        if (!any)
            return;
        lapic_eoi();
    }
}

void lapic_init_cpu(void)
{
    if (this_cpu()->id == 0)
        choose_mode();
    enter_mode();
    u32 lint = nmi_input(lapic_id());
    if (!apic_x2apic) {
        // Flat; 8 bits, shared if there are more CPUs.
        lapic_write(LAPIC_DFR, ~0u);
        lapic_write(LAPIC_LDR, 1u << (24 + (this_cpu()->id & 7)));
    }
    lapic_write(LAPIC_TPR, 0);
    lapic_write(LAPIC_SVR, SVR_ENABLE | VECTOR_SPURIOUS);
    lapic_write(LAPIC_LVT_TIMER, LVT_MASKED);
    lapic_write(LAPIC_LVT_ERROR, LVT_MASKED);
    lapic_write(LAPIC_LVT_PERF, LVT_MASKED);
    lapic_write(LAPIC_LVT_LINT0, lint == 0 ? LVT_NMI : LVT_MASKED);
    lapic_write(LAPIC_LVT_LINT1, lint == 1 ? LVT_NMI : LVT_MASKED);
    drop_in_service();
}

void lapic_accept_i8259(void)
{
    lapic_write(LAPIC_LVT_LINT0, LVT_EXTINT);
}

NOTRACE void lapic_counter_nmi(bool on)
{
    lapic_write(LAPIC_LVT_PERF, on ? LVT_NMI : LVT_MASKED | LVT_NMI);
}

bool lapic_thermal_taken(void)
{
    return VERSION_LAST_LVT(lapic_read(LAPIC_VERSION)) < LAST_LVT_THERMAL ||
           (lapic_read(LAPIC_LVT_THERMAL) & LVT_DELIVERY) == LVT_SMI;
}

void lapic_thermal(u32 vector)
{
    lapic_write(LAPIC_LVT_THERMAL, vector);
}

u32 lapic_id(void)
{
    u32 id = lapic_read(LAPIC_ID);
    return apic_x2apic ? id : id >> 24;
}

void lapic_eoi(void)
{
    lapic_write(LAPIC_EOI, 0);
}

bool lapic_in_service(u32 vector)
{
    assert(vector < 256);
    return lapic_read(LAPIC_ISR + vector / 32 * 0x10) & 1u << (vector % 32);
}

bool lapic_requested(u32 vector)
{
    assert(vector < 256);
    return lapic_read(LAPIC_IRR + vector / 32 * 0x10) & 1u << (vector % 32);
}

static NOTRACE void wait_until_sent(void)
{
    u32 spins = 0;
    while (lapic_read(LAPIC_ICR_LOW) & ICR_PENDING && ++spins < ICR_SPINS)
        cpu_relax();
}

// One write, which stores before it do not wait for (SDM vol. 3, 11.12.3).
static NOTRACE void send_x2apic(u32 apic_id, u32 command)
{
    __asm__ volatile("mfence; lfence" ::: "memory");
    write_msr(MSR_X2APIC(LAPIC_ICR_LOW), (u64)apic_id << 32 | command);
}

static NOTRACE void send(u32 apic_id, u32 command)
{
    if (apic_x2apic) {
        send_x2apic(apic_id, command);
        return;
    }
    u32 flags = irq_save();
    wait_until_sent();
    lapic_write(LAPIC_ICR_HIGH, apic_id << 24);
    lapic_write(LAPIC_ICR_LOW, command);
    irq_restore(flags);
}

void lapic_send_init(void)
{
    send(0, ICR_ALL_BUT_SELF | ICR_ASSERT | ICR_INIT);
}

void lapic_send_startup(u8 page)
{
    send(0, ICR_ALL_BUT_SELF | ICR_ASSERT | ICR_STARTUP | page);
}

void lapic_send_ipi(u32 apic_id, u32 vector)
{
    assert(vector >= 16);
    if (fault_due(FAULT_IPI))
        return;
    send(apic_id, ICR_ASSERT | ICR_FIXED | vector);
}

static bool has_all_but(const struct cpu_set *set, u32 own)
{
    struct cpu_set others = cpu_set_below(cpu_count);
    cpu_set_remove(&others, own);
    return cpu_set_includes(set, &others);
}

static void send_each(const struct cpu_set *set, u32 own, u32 vector)
{
    CPU_SET_FOR_EACH(cpu, set)
    {
        if (cpu != own)
            lapic_send_ipi(cpus[cpu]->apic_id, vector);
    }
}

static void send_others(u32 vector)
{
    if (!fault_due(FAULT_IPI))
        send(0, ICR_ALL_BUT_SELF | ICR_ASSERT | ICR_FIXED | vector);
}

// All others are interrupted by one command. It has no effect on CPUs that are
// not used: they are halted with interrupts off, and their LAPIC is disabled by
// the INIT.
void lapic_send_ipi_set(const struct cpu_set *set, u32 vector)
{
    assert(vector >= 16);
    u32 flags = irq_save(); // this CPU must not change by migration
    u32 own = this_cpu()->id;
    if (cpu_count > 1 && has_all_but(set, own))
        send_others(vector);
    else
        send_each(set, own, vector);
    irq_restore(flags);
}

// NMI-safe: an NMI may interrupt another send between its two ICR writes. So
// the ICR is idle and its destination restored on return.
NOTRACE void lapic_send_nmi(u32 apic_id)
{
    if (fault_due(FAULT_NMI))
        return;
    if (apic_x2apic) {
        send_x2apic(apic_id, ICR_ASSERT | ICR_NMI);
        return;
    }
    u32 flags = irq_save();
    wait_until_sent();
    u32 destination = lapic_read(LAPIC_ICR_HIGH);
    send(apic_id, ICR_ASSERT | ICR_NMI);
    wait_until_sent();
    lapic_write(LAPIC_ICR_HIGH, destination);
    irq_restore(flags);
}

// NMI-safe: the self shorthand neither uses nor changes the destination that an
// interrupted send may have written.
NOTRACE void lapic_send_self(u32 vector)
{
    assert(vector >= 16);
    u32 command = ICR_SELF | ICR_ASSERT | ICR_FIXED | vector;
    if (fault_due(FAULT_IPI))
        return;
    if (apic_x2apic) {
        send_x2apic(0, command);
        return;
    }
    u32 flags = irq_save();
    wait_until_sent();
    lapic_write(LAPIC_ICR_LOW, command);
    wait_until_sent();
    irq_restore(flags);
}

void lapic_timer_mode(u32 lvt)
{
    lapic_write(LAPIC_DIVIDE, DIVIDE_BY_1);
    lapic_write(LAPIC_INITIAL_COUNT, 0);
    lapic_write(LAPIC_LVT_TIMER, lvt);
}

void lapic_timer_start(u32 count)
{
    lapic_write(LAPIC_INITIAL_COUNT, count);
}

u32 lapic_timer_count(void)
{
    return lapic_read(LAPIC_CURRENT_COUNT);
}

const char *const lapic_lvt_names[LAPIC_LVTS] = { "timer", "counters", "LINT0",
                                                  "LINT1", "error" };

void lapic_read_lvts(u32 lvts[LAPIC_LVTS])
{
    static const u16 registers_of[LAPIC_LVTS] = {
        LAPIC_LVT_TIMER, LAPIC_LVT_PERF, LAPIC_LVT_LINT0, LAPIC_LVT_LINT1,
        LAPIC_LVT_ERROR
    };
    for (u32 i = 0; i < LAPIC_LVTS; i++)
        lvts[i] = lapic_read(registers_of[i]);
}
