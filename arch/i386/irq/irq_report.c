// hardware.interrupts: how interrupts are routed: the wiring of ISA interrupts,
// the entries of the I/O APICs, and each CPU's local vector table.
#include "arch/i386/irq/controllers.h"
#include "kernel/base/providers.h"
#include "kernel/mm/chain.h"
#include "kernel/mm/heap.h"

#define VECTOR(entry) ((u32)(entry)&0xff)
#define DELIVERY(entry) ((u32)(entry) >> 8 & 7)
#define DESTINATION(entry) ((u32)((entry) >> 56))

// SDM vol. 3, 11.5.1 and 11.6.1.
static const char *const deliveries[8] = {
    "fixed", "lowest priority", "SMI",    "reserved", "NMI",
    "INIT",  "start-up",        "ExtINT",
};

static void report_isa(struct chain *out)
{
    for (u32 i = 0; i < ISA_IRQS; i++) {
        const struct irq_line *l = &isa_lines[i];
        chain_printf(out, "ISA %u: GSI %u, active %s, %s\n", i, l->gsi,
                     l->active_low ? "low" : "high",
                     l->level ? "level" : "edge");
    }
}

static void report_ioapics(struct chain *out)
{
    u32 end = ioapic_end(), masked = 0;
    for (u32 gsi = 0; gsi < end; gsi++) {
        u64 entry;
        if (!ioapic_entry(gsi, &entry))
            continue;
        if (entry & REDIRECT_MASKED) {
            masked++;
            continue;
        }
        chain_printf(out, "GSI %u: vector %#x, %s, %s %#x, active %s, %s\n",
                     gsi, VECTOR(entry), deliveries[DELIVERY(entry)],
                     entry & REDIRECT_LOGICAL ? "logical" : "APIC",
                     DESTINATION(entry),
                     entry & REDIRECT_ACTIVE_LOW ? "low" : "high",
                     entry & REDIRECT_LEVEL ? "level" : "edge");
    }
    chain_printf(out, "I/O APICs: GSI 0 to %u, %u masked\n", end - 1, masked);
}

static void read_lvts(void *arg)
{
    u32(*lvts)[LAPIC_LVTS] = arg;
    lapic_read_lvts(lvts[this_cpu()->id]);
}

static void report_lvts(struct chain *out)
{
    u32(*lvts)[LAPIC_LVTS] = kmalloc(cpu_count * sizeof(*lvts));
    if (!lvts) {
        chain_printf(out, "local vectors: no memory to read them\n");
        return;
    }
    smp_call_all(read_lvts, lvts);
    for (u32 cpu = 0; cpu < cpu_count; cpu++) {
        chain_printf(out, "CPU %u, APIC id %u:", cpu, cpus[cpu]->apic_id);
        for (u32 i = 0; i < LAPIC_LVTS; i++) {
            u32 lvt = lvts[cpu][i];
            chain_printf(out, " %s %#x %s%s%s", lapic_lvt_names[i], VECTOR(lvt),
                         deliveries[DELIVERY(lvt)],
                         lvt & REDIRECT_MASKED ? " masked" : "",
                         i + 1 < LAPIC_LVTS ? "," : "\n");
        }
    }
    kfree(lvts);
}

void interrupts_report(struct chain *out)
{
    report_isa(out);
    if (ioapic_present())
        report_ioapics(out);
    else
        chain_printf(out, "I/O APIC: not there: the 8259 is used\n");
    if (apic_present)
        report_lvts(out);
    else
        chain_printf(out, "local APIC: not there\n");
}
