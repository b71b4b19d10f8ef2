// The local APIC, and the CPUs that ACPI or the MP tables list, as the CPU code
// (arch/i386/cpu) needs them.
//
// The tables are filled by arch_init_devices and do not change afterwards; the
// lapic_ functions may be called in any context, NMI included, once
// `apic_present` is set.
#pragma once

#include "arch/cpu.h"
#include "arch/irq.h"

extern bool apic_present; // there is a local APIC, and it is used
extern bool apic_x2apic;  // in x2APIC mode

// The usable CPUs' APIC ids; the boot CPU's is the first one.
extern u32 acpi_cpu_count;
extern u32 acpi_cpu_apic_ids[CPU_MAX];

// Enables the calling CPU's local APIC (LINT1 = NMI, everything else masked).
void lapic_init_cpu(void);
// Starts the clock events on the calling CPU's timer; nothing is armed yet.
void lapic_timer_init_cpu(void);
u32 lapic_id(void);
// Whether the thermal sensor's interrupt is not there, or the firmware's (SMI).
bool lapic_thermal_taken(void);
void lapic_thermal(u32 vector); // to this CPU
// Whether this CPU's performance counters raise NMIs on it.
void lapic_counter_nmi(bool on);

// Start-up of the other CPUs: sent to all but this one.
void lapic_send_init(void);
void lapic_send_startup(u8 page); // they start at page << 12 in real mode

// Inter-processor interrupts. This CPU is ignored in a set.
void lapic_send_ipi(u32 apic_id, u32 vector);
void lapic_send_ipi_set(const struct cpu_set *set, u32 vector);
void lapic_send_self(u32 vector);
void lapic_send_nmi(u32 apic_id);

// Sets the handler of a vector of 0x20-0xff; interrupts off, before its first
// interrupt. `name` is shown in /proc/interrupts.
void irq_register_vector(u32 vector, irq_handler_t handler, void *arg,
                         const char *name);
