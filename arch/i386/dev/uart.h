// Serial ports, beyond what consoles and terminals ask of them.
#pragma once

// Waits until what was written has left the machine (for a second at most):
// before the power goes.
void uart_drain(void);
