// Start-up order of the machine's devices, on the boot CPU with interrupts off:
// firmware tables, then interrupts, then clocks.
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/clock/clock_start.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/machine_check.h"
#include "arch/i386/cpu/thermal.h"
#include "arch/i386/cpu/topology.h"
#include "arch/i386/dev/uart.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/log.h"

static void start_lapic(void)
{
    if (!cpu_features.apic)
        return;
    int err = lapic_map(lapic_base());
    if (err) {
        log_printf("irq: the local APIC cannot be mapped\n");
        return;
    }
    cpus_complete(lapic_first_id());
    lapic_init_cpu();
    this_cpu()->apic_id = lapic_id();
}

// Until here the 8259's interrupts arrive through the LAPIC's LINT0. A pending
// one must be withdrawn before LINT0 is masked: it has already been signalled
// to the CPU, and QEMU would deliver it with a vector of -1.
void arch_init_devices(void)
{
    machine_check_init_cpu();
    idle_init();
    fpu_check_stores();
    i8259_init(VECTOR_I8259_PARKED);
    acpi_init();
    uart_follow_spcr();
    if (!madt_found())
        mp_tables_read();
    start_lapic();
    irq_init();
    thermal_init_cpu();
    topology_init_cpu();
    if (!apic_present)
        acpi_cpu_count = 1;
    log_printf("irq: %s, %s, %u CPU%s\n", apic_present ? "LAPIC" : "no APIC",
               ioapic_present() ? "I/O APIC" : "8259", acpi_cpu_count,
               acpi_cpu_count > 1 ? "s" : "");
    clock_init();
}
