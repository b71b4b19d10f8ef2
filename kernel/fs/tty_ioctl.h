// Between tty.c and tty_ioctl.c.
#pragma once

#include "kernel/fs/tty_private.h"

int tty_ioctl(struct file *f, u32 cmd, u32 arg);
// The open file's terminal; NULL when it was hung up.
struct tty *tty_of_file(struct file *f);
