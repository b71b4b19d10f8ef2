// Serial ports, beyond the console and terminal interfaces.
#pragma once

// Waits, for at most a second, until all output has been sent: before power
// off.
void uart_drain(void);
// With console=spcr: lets ttyS0 be the port that ACPI's table SPCR names, at
// its rate, and shows the log there from its start. Once, after acpi_init.
void uart_follow_spcr(void);
