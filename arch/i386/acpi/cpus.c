// CPUs and interrupt controller addresses from the firmware's tables. Collected
// in the tables' order, used afterwards.
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/cpu/registers.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/log.h"

#define POLARITY(flags) ((flags)&3)
#define TRIGGER(flags) ((flags) >> 2 & 3)
#define ACTIVE_LOW 3u
#define LEVEL 3u

u32 acpi_cpu_count;
u32 acpi_cpu_apic_ids[CPU_MAX];

// The input at which CPUs expect NMIs, and the APIC ids of those that expect
// them at the other one.
static u32 nmi_lint = 1;
static u32 nmi_exceptions[CPU_MAX], nmi_exception_count;

static paddr_t lapic_address;

void cpu_found(u32 apic_id)
{
    if (apic_id > ASM_XAPIC_ID_MAX && !cpu_features.x2apic) {
        log_printf("cpu: APIC id %u is left out: without x2APIC mode the last "
                   "one is %u\n",
                   apic_id, ASM_XAPIC_ID_MAX);
        return;
    }
    for (u32 i = 0; i < acpi_cpu_count; i++) {
        if (acpi_cpu_apic_ids[i] == apic_id)
            return;
    }
    if (acpi_cpu_count < CPU_MAX)
        acpi_cpu_apic_ids[acpi_cpu_count++] = apic_id;
    else
        log_printf("cpu: APIC id %u is left out: only %u CPUs\n", apic_id,
                   CPU_MAX);
}

bool cpus_need_x2apic(void)
{
    for (u32 i = 0; i < acpi_cpu_count; i++) {
        if (acpi_cpu_apic_ids[i] > ASM_XAPIC_ID_MAX)
            return true;
    }
    return false;
}

void cpus_complete(u32 boot)
{
    u32 i = 0;
    while (i < acpi_cpu_count && acpi_cpu_apic_ids[i] != boot)
        i++;
    if (i == acpi_cpu_count) { // not listed, or beyond the limit
        i = MIN(acpi_cpu_count, CPU_MAX - 1u);
        acpi_cpu_count = i + 1;
    }
    acpi_cpu_apic_ids[i] = acpi_cpu_apic_ids[0];
    acpi_cpu_apic_ids[0] = boot;
}

static u32 nmi_exception(u32 apic_id)
{
    u32 i = 0;
    while (i < nmi_exception_count && nmi_exceptions[i] != apic_id)
        i++;
    return i;
}

void nmi_inputs_found(u32 lint)
{
    nmi_lint = lint != 0;
    nmi_exception_count = 0;
}

void nmi_input_found(u32 apic_id, u32 lint)
{
    u32 i = nmi_exception(apic_id);
    bool is = i < nmi_exception_count, should = nmi_lint != (lint != 0);
    if (is && !should)
        nmi_exceptions[i] = nmi_exceptions[--nmi_exception_count];
    else if (should && !is && i < CPU_MAX)
        nmi_exceptions[nmi_exception_count++] = apic_id;
}

u32 nmi_input(u32 apic_id)
{
    bool excepted = nmi_exception(apic_id) < nmi_exception_count;
    return excepted ? !nmi_lint : nmi_lint;
}

void lapic_found(paddr_t base)
{
    if (base)
        lapic_address = base;
}

paddr_t lapic_base(void)
{
    return lapic_address;
}

void ioapic_found(paddr_t base, u32 gsi_base)
{
    int err = cpu_features.apic ? ioapic_add(base, gsi_base) : 0;
    if (err)
        log_printf("irq: I/O APIC at %#llx left out (error %d)\n", base, err);
}

void isa_line_found(u32 irq, u32 gsi, u32 flags)
{
    if (irq >= ISA_IRQS)
        return;
    // 0 means "conforms to the bus": ISA is active high, edge-triggered.
    isa_lines[irq] = (struct irq_line){
        .gsi = gsi,
        .active_low = POLARITY(flags) == ACTIVE_LOW,
        .level = TRIGGER(flags) == LEVEL,
    };
}
