// Terminals: line discipline, job control, window size, over a tty driver.
//
// Lock: tty->lock (interrupt-disabling spinlock; input arrives in interrupts).
#pragma once

#include "kernel/base/tty_driver.h"
#include "kernel/fs/vfs.h"

void tty_init(void); // makes a tty and a /dev node for each present driver
u32 tty_device_number(struct tty *t); // for /proc/PID/stat
u32 tty_foreground(struct tty *t);
