// The names of serial ports in console=. Pure arithmetic.
#pragma once

#include "arch/i386/acpi/spcr.h"

#define SERIAL_RATE_MAX 115200u // in bauds, of a divisor of 1

// "ttyS0" to "ttyS3" or "0xPORT", each with or without a rate in bauds:
// "0x3e8,9600". COM1 to COM4 have the interrupts that are usual there, other
// ports none. False, with *out unchanged: the text is no such name.
bool serial_name_parse(const char *text, struct spcr_port *out);
