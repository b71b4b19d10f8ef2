// The serial port that the firmware uses as its console, by ACPI's table SPCR
// (Microsoft, Serial Port Console Redirection Table, version 4).
#pragma once

#include "arch/i386/acpi/acpi.h"

struct spcr_port {
    u16 port;    // of a 16550's registers, a byte each
    u8 irq;      // of the ISA bus; 0: none, or another kind
    u32 rate;    // in bauds; 0: as the firmware has set it
    u16 divisor; // for this rate; 0: as the firmware has set it
};

// Reads the table, whose length and checksum were checked. NULL, or why the
// port cannot be used.
const char *spcr_parse(const struct acpi_header *table, struct spcr_port *out);

// What acpi_init has found: a port, unless there is a problem.
extern struct spcr_port spcr_port;
extern const char *spcr_problem;
