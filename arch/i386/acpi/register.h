// Registers that ACPI tables describe by a generic address (ACPI 6.4, 5.2.3.2):
// in I/O space, in memory, or in the configuration space of a PCI device on bus
// 0.
//
// Opened at start-up; read and written in any context, without a lock.
#pragma once

#include "arch/i386/acpi/acpi.h"

struct acpi_register {
    u8 space;
    u8 bytes; // of an access: 1, 2 or 4; 0: there is no such register
    u64 address;
    volatile void *memory;
};

// Takes the address, and maps memory. `bytes` is the size of an access where
// the address does not give one. False: the register does not exist (address
// 0), or cannot be reached, and r->bytes is 0.
bool acpi_register_open(struct acpi_register *r, const struct acpi_address *a,
                        u8 bytes);
u32 acpi_register_read(const struct acpi_register *r);
void acpi_register_write(const struct acpi_register *r, u32 value);
// Writes its name to `text`: "port 0x604", "memory 0xfec00000", "PCI 00:1f.0
// register 0x44".
#define ACPI_REGISTER_NAME 40u
void acpi_register_name(const struct acpi_register *r,
                        char text[ACPI_REGISTER_NAME]);
