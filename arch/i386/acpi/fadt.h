// The fixed ACPI description table (ACPI 6.4, 5.2.9), as used by power.c. All
// zero if there is none.
#pragma once

#include "arch/i386/acpi/acpi.h"
#include "arch/i386/acpi/register.h"
#include "arch/i386/acpi/sleep_type.h"

struct fadt {
    struct acpi_header header;
    u32 firmware_control, dsdt;
    u8 model, profile;
    u16 sci;
    u32 smi_command;
    u8 acpi_enable, acpi_disable, s4bios_request, pstate_control;
    u32 pm1a_event, pm1b_event, pm1a_control, pm1b_control, pm2_control;
    u32 pm_timer, gpe0, gpe1;
    u8 pm1_event_length, pm1_control_length, pm2_control_length;
    u8 pm_timer_length, gpe0_length, gpe1_length, gpe1_base, cstate_control;
    u16 c2_latency, c3_latency, flush_size, flush_stride;
    u8 duty_offset, duty_width, day_alarm, month_alarm, century;
    u16 boot_flags;
    u8 reserved;
    u32 flags;
    struct acpi_address reset;
    u8 reset_value;
    u16 arm_flags;
    u8 minor;
    u64 x_firmware_control, x_dsdt;
    struct acpi_address x_pm1a_event, x_pm1b_event, x_pm1a_control;
    struct acpi_address x_pm1b_control, x_pm2_control, x_pm_timer;
    struct acpi_address x_gpe0, x_gpe1, sleep_control, sleep_status;
} PACKED;
_Static_assert(offsetof(struct fadt, pm_timer) == 76 &&
                   offsetof(struct fadt, x_pm_timer) == 208 &&
                   offsetof(struct fadt, century) == 108 &&
                   offsetof(struct fadt, flags) == 112 &&
                   offsetof(struct fadt, reset) == 116 &&
                   offsetof(struct fadt, x_dsdt) == 140 &&
                   offsetof(struct fadt, x_pm1a_control) == 172 &&
                   offsetof(struct fadt, sleep_control) == 244 &&
                   sizeof(struct fadt) == 268,
               "ACPI 6.4, table 5.9");

// Fixed feature flags (ACPI 6.4, table 5.10).
#define FADT_RESET_SUPPORTED (1u << 10)
#define FADT_HARDWARE_REDUCED (1u << 20)

extern struct fadt fadt;
extern struct sleep_type s5; // from the DSDT, or an SSDT

// The registers of the FADT: those that switch the machine off or reset it, and
// the power management timer.
struct power_registers {
    struct acpi_register pm1a, pm1b; // control registers, 16 bits
    struct acpi_register sleep_control, sleep_status, reset; // 8 bits
    struct acpi_register timer; // 32 bits; in I/O space or memory
};
extern struct power_registers power_registers;
