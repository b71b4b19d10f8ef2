// Serial ports, beyond the console and terminal interfaces.
#pragma once

// Waits, for at most a second, until all output has been sent: before power
// off.
void uart_drain(void);
