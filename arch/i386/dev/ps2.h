// The PS/2 keyboard behind the i8042 controller.
#pragma once

#include "kernel/base/tty_driver.h"

// Finds and starts the keyboard; its input is passed to the driver's tty. Logs
// its absence.
void keyboard_start(struct tty_driver *d);
