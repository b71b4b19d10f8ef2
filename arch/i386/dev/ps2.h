// The PS/2 keyboard behind the i8042 controller.
#pragma once

#include "kernel/base/tty_driver.h"

// Finds and starts the keyboard; what is typed goes to the driver's tty. Says
// so in the log when there is none.
void keyboard_start(struct tty_driver *d);
