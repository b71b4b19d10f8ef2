// Power off, reset, and QEMU's exit with a status.
//
// Called in any context, also for a hung machine: the other CPUs are stopped
// first; then each way is announced on the console, tried, and given a limited
// time to take effect before the next one. Methods that a firmware's AML wants
// to be run before (\_PTS, \_GTS) are not: there is no interpreter.
#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/i386/acpi/fadt.h"
#include "arch/i386/dev/pci_config.h"
#include "arch/i386/dev/port.h"
#include "arch/i386/dev/uart.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "kernel/debug/leak.h"
#include "lib/format.h"
#include "lib/string.h"

#include <strobe/abi.h>

KERNEL_ARG(reboot, "reboot=acpi, kbd, pci or triple: the first way to reset "
                   "the machine");

// PM1 control registers (ACPI 6.4, table 4.12).
#define PM1_SCI_ENABLE 1u
#define PM1_SLEEP_TYPE(t) ((u32)(t) << 10)
#define PM1_SLEEP_ENABLE (1u << 13)
// Sleep control and status of hardware-reduced machines (tables 4.22, 4.23).
#define SLEEP_TYPE(t) ((u32)(t) << 2)
#define SLEEP_ENABLE (1u << 5)
#define SLEEP_STATUS_WAKE (1u << 7) // cleared by writing 1

#define RESET_CONTROL 0xcf9 // of chipsets with PCI (Intel ICH and PCH, RST_CNT)
#define RESET_SYSTEM 0x02
#define RESET_CPU 0x04
#define I8042_STATUS 0x64 // and commands
#define I8042_INPUT_FULL 0x02
#define I8042_ABSENT 0xff
#define I8042_PULSE_RESET 0xfe

#define ACPI_MODE_WAIT_MS 1000u // firmware may take long over the SMI
#define OFF_WAIT_MS 3000u
#define RESET_WAIT_MS 500u
#define INPUT_WAIT_MS 50u
#define TSC_HZ_MAX 4000000000ull // assumed before the rate is known

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

// --- ways, and waiting for them ----------------------------------------------

#define WAY_TEXT 64u

struct way {
    const char *name;             // for `reboot=`
    const char *(*why_not)(void); // NULL: it can be tried
    void (*go)(void);             // returns if it has no effect at once
    void (*describe)(char text[WAY_TEXT]);
};

// Waits until `done`, or, if that is NULL, for the whole time.
static bool wait_ms(u32 ms, bool (*done)(void))
{
    u64 hz = clock_tsc_hz();
    u64 ticks = (hz ? hz : TSC_HZ_MAX) / 1000 * ms, start = rdtsc();
    do {
        if (done && done())
            return true;
        cpu_relax();
    } while (rdtsc() - start < ticks);
    return false;
}

static void try_way(const struct way *way, const char *what, u32 wait)
{
    char text[WAY_TEXT] = "";
    const char *why_not = way->why_not();
    way->describe(text);
    if (why_not) {
        console_printf("power: %s by %s: no: %s\n", what, text, why_not);
        return;
    }
    console_printf("power: %s by %s\n", what, text);
    uart_drain();
    way->go();
    wait_ms(wait, NULL);
    console_printf("power: it had no effect in %u ms\n", wait);
}

// --- off ---------------------------------------------------------------------

static bool is_reduced(void)
{
    return fadt.flags & FADT_HARDWARE_REDUCED || !power_registers.pm1a.bytes;
}

static const char *acpi_off_why_not(void)
{
    if (!fadt.header.length)
        return "the firmware has no ACPI tables for it (FADT)";
    if (is_reduced() && !power_registers.sleep_control.bytes)
        return "the FADT has no usable control register";
    return s5.known ? NULL : "no table defines \\_S5 as constants";
}

static bool in_acpi_mode(void)
{
    return acpi_register_read(&power_registers.pm1a) & PM1_SCI_ENABLE;
}

// Sleep requests work in ACPI mode only (ACPI 6.4, 4.8.2.5).
static void enter_acpi_mode(void)
{
    if (in_acpi_mode() || !fadt.smi_command || !fadt.acpi_enable)
        return;
    out8((u16)fadt.smi_command, fadt.acpi_enable);
    if (!wait_ms(ACPI_MODE_WAIT_MS, in_acpi_mode))
        console_printf("power: the firmware does not enter ACPI mode\n");
}

static u32 sleep_value(const struct acpi_register *r, u8 type)
{
    u32 keep = acpi_register_read(r);
    keep &= ~(PM1_SLEEP_TYPE(SLEEP_TYPE_MAX) | PM1_SLEEP_ENABLE);
    return keep | PM1_SLEEP_TYPE(type);
}

// Both registers have the type before one enables it (4.8.3.2.1).
static void pm1_off(void)
{
    const struct power_registers *r = &power_registers;
    enter_acpi_mode();
    u32 a = sleep_value(&r->pm1a, s5.a);
    u32 b = r->pm1b.bytes ? sleep_value(&r->pm1b, s5.b) : 0;
    acpi_register_write(&r->pm1a, a);
    if (r->pm1b.bytes)
        acpi_register_write(&r->pm1b, b);
    acpi_register_write(&r->pm1a, a | PM1_SLEEP_ENABLE);
    if (r->pm1b.bytes)
        acpi_register_write(&r->pm1b, b | PM1_SLEEP_ENABLE);
}

// Hardware-reduced (4.8.3.7).
static void reduced_off(void)
{
    const struct power_registers *r = &power_registers;
    if (r->sleep_status.bytes)
        acpi_register_write(&r->sleep_status, SLEEP_STATUS_WAKE);
    acpi_register_write(&r->sleep_control, SLEEP_TYPE(s5.a) | SLEEP_ENABLE);
}

static void acpi_off(void)
{
    if (is_reduced())
        reduced_off();
    else
        pm1_off();
}

static void describe_acpi_off(char text[WAY_TEXT])
{
    char name[ACPI_REGISTER_NAME] = "";
    const struct acpi_register *r =
        is_reduced() ? &power_registers.sleep_control : &power_registers.pm1a;
    if (r->bytes)
        acpi_register_name(r, name);
    format(text, WAY_TEXT, "ACPI%s%s", name[0] ? ", " : "", name);
}

void machine_power_off(bool failed)
{
    static const struct way acpi = { "acpi", acpi_off_why_not, acpi_off,
                                     describe_acpi_off };
    failed |= leak_check();
    irq_disable();
    debug_exit(failed ? DEBUG_EXIT_FAILED : DEBUG_EXIT_OK);
    smp_stop_others();
    try_way(&acpi, "off", OFF_WAIT_MS);
    console_printf("The machine can be switched off now.\n");
    cpu_halt_forever();
}

// --- reset -------------------------------------------------------------------

static const char *acpi_reset_why_not(void)
{
    if (!(fadt.flags & FADT_RESET_SUPPORTED))
        return "the firmware has no ACPI reset register";
    return power_registers.reset.bytes ? NULL
                                       : "its reset register is out of reach";
}

static void acpi_reset(void)
{
    acpi_register_write(&power_registers.reset, fadt.reset_value);
}

static void describe_acpi_reset(char text[WAY_TEXT])
{
    char name[ACPI_REGISTER_NAME] = "";
    if (power_registers.reset.bytes)
        acpi_register_name(&power_registers.reset, name);
    format(text, WAY_TEXT, "ACPI%s%s", name[0] ? ", " : "", name);
}

static const char *kbd_why_not(void)
{
    return in8(I8042_STATUS) == I8042_ABSENT ? "it does not answer" : NULL;
}

static bool kbd_ready(void)
{
    return !(in8(I8042_STATUS) & I8042_INPUT_FULL);
}

static void kbd_reset(void)
{
    wait_ms(INPUT_WAIT_MS, kbd_ready);
    out8(I8042_STATUS, I8042_PULSE_RESET);
}

static void describe_kbd(char text[WAY_TEXT])
{
    strlcpy(text, "the keyboard controller", WAY_TEXT);
}

static const char *pci_why_not(void)
{
    return pci_present() ? NULL : "the machine has no PCI";
}

// The CPU is reset when its bit changes from 0 to 1.
static void pci_reset(void)
{
    u8 keep = (u8)(in8(RESET_CONTROL) & ~(RESET_SYSTEM | RESET_CPU));
    out8(RESET_CONTROL, keep | RESET_SYSTEM);
    out8(RESET_CONTROL, keep | RESET_SYSTEM | RESET_CPU);
}

static void describe_pci(char text[WAY_TEXT])
{
    format(text, WAY_TEXT, "the chipset, port %#x", RESET_CONTROL);
}

static const char *triple_why_not(void)
{
    return NULL;
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

static void describe_triple(char text[WAY_TEXT])
{
    strlcpy(text, "a triple fault", WAY_TEXT);
}

static const struct way resets[] = {
    { "acpi", acpi_reset_why_not, acpi_reset, describe_acpi_reset },
    { "kbd", kbd_why_not, kbd_reset, describe_kbd },
    { "pci", pci_why_not, pci_reset, describe_pci },
    { "triple", triple_why_not, triple_fault, describe_triple },
};

// The index that `reboot=` names; 0 if it names none.
static u32 first_reset(void)
{
    for (u32 i = 0; i < ARRAY_SIZE(resets); i++) {
        if (!strcmp(arg_reboot.value, resets[i].name))
            return i;
    }
    if (arg_reboot.present)
        console_printf("power: reboot=%s: there are acpi, kbd, pci, triple\n",
                       arg_reboot.value);
    return 0;
}

void machine_reset(void)
{
    irq_disable();
    smp_stop_others();
    u32 first = first_reset();
    try_way(&resets[first], "reset", RESET_WAIT_MS);
    for (u32 i = 0; i < ARRAY_SIZE(resets); i++) {
        if (i != first)
            try_way(&resets[i], "reset", RESET_WAIT_MS);
    }
    cpu_halt_forever();
}
