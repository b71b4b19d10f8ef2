// The PS/2 keyboard behind the i8042 controller.
#pragma once

#include "kernel/base/tty_driver.h"

// Lets keyboards type on the driver's terminal; finds and starts the PS/2 one.
// Logs its absence.
void ps2_start(struct tty_driver *screen);
