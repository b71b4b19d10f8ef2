// Power off, reset, and QEMU's exit with a status.
//
// May be called from a panic: polls, takes no lock, and tries the next method
// if one has no effect.
#include "arch/cpu.h"
#include "arch/i386/acpi/fadt.h"
#include "arch/i386/dev/port.h"
#include "arch/i386/dev/uart.h"
#include "kernel/base/log.h"
#include "kernel/debug/leak.h"

#include <strobe/abi.h>

#define PM1_SCI_ENABLE 1u
#define PM1_SLEEP_TYPE(t) (((u32)(t)&7) << 10)
#define PM1_SLEEP_TYPE_MASK (7u << 10)
#define PM1_SLEEP_ENABLE (1u << 13)

#define RESET_CONTROL 0xcf9 // PCI chipsets
#define RESET_SYSTEM 0x02
#define RESET_CPU 0x04
#define I8042_COMMAND 0x64
#define I8042_INPUT_FULL 0x02
#define I8042_PULSE_RESET 0xfe

#define WAIT_SPINS 1000000u // port reads: about a second

// The device reads as 0; without it the bus floats high.
static void debug_exit(u8 value)
{
    uart_drain();
    if (in8(DEBUG_EXIT_PORT) == 0)
        out8(DEBUG_EXIT_PORT, value);
}

void machine_panic_exit(void)
{
    debug_exit(DEBUG_EXIT_PANIC);
}

// Sleep requests work in ACPI mode only.
static void enter_acpi_mode(u16 control)
{
    if (in16(control) & PM1_SCI_ENABLE || !fadt.smi_command ||
        !fadt.acpi_enable)
        return;
    out8((u16)fadt.smi_command, fadt.acpi_enable);
    u32 spins = 0;
    while (!(in16(control) & PM1_SCI_ENABLE) && ++spins < WAIT_SPINS)
        cpu_relax();
}

static void sleep_request(u16 control, u8 type)
{
    u32 value = in16(control) & ~(PM1_SLEEP_TYPE_MASK | PM1_SLEEP_ENABLE);
    value |= PM1_SLEEP_TYPE(type);
    out16(control, (u16)value);
    out16(control, (u16)(value | PM1_SLEEP_ENABLE));
}

static void acpi_power_off(void)
{
    if (!s5.known || !fadt.pm1a_control)
        return;
    enter_acpi_mode((u16)fadt.pm1a_control);
    sleep_request((u16)fadt.pm1a_control, s5.a);
    if (fadt.pm1b_control)
        sleep_request((u16)fadt.pm1b_control, s5.b);
    for (u32 spins = 0; spins < WAIT_SPINS; spins++)
        cpu_relax();
}

void machine_power_off(bool failed)
{
    failed |= leak_check();
    irq_disable();
    debug_exit(failed ? DEBUG_EXIT_FAILED : DEBUG_EXIT_OK);
    acpi_power_off();
    static const char text[] = "The machine can be switched off now.\n";
    console_write_raw(text, sizeof(text) - 1);
    cpu_halt_forever();
}

static void acpi_reset(void)
{
    const struct acpi_address *r = &fadt.reset;
    if (fadt.flags & FADT_RESET_SUPPORTED && r->space == ACPI_SPACE_IO)
        out8((u16)r->address, fadt.reset_value);
}

static void i8042_reset(void)
{
    u32 spins = 0;
    while (in8(I8042_COMMAND) & I8042_INPUT_FULL && ++spins < WAIT_SPINS)
        cpu_relax();
    out8(I8042_COMMAND, I8042_PULSE_RESET);
}

static void wait_for_power_off(void)
{
    for (u32 spins = 0; spins < WAIT_SPINS; spins++)
        cpu_relax();
}

// An exception without an IDT: the CPU shuts down and the chipset resets it.
static void triple_fault(void)
{
    static const struct {
        u16 limit;
        u32 base;
    } PACKED no_idt = { 0, 0 };
    __asm__ volatile("lidt %0; int3" ::"m"(no_idt));
}

void machine_reset(void)
{
    irq_disable();
    uart_drain();
    acpi_reset();
    wait_for_power_off();
    out8(RESET_CONTROL, RESET_SYSTEM);
    out8(RESET_CONTROL, RESET_SYSTEM | RESET_CPU);
    wait_for_power_off();
    i8042_reset();
    wait_for_power_off();
    triple_fault();
    cpu_halt_forever();
}
