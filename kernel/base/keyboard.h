// Keyboards, of any kind, type on one terminal: the machine's screen.
#pragma once

#include "kernel/base/keymap.h"
#include "kernel/base/tty_driver.h"

// The terminal that keyboards type on from now on. Once, at start-up.
void keyboard_attach(struct tty_driver *screen);
// Handles one code of a keyboard whose state is `k`: its characters become the
// terminal's input, and a request of SysRq is served. Until there is a terminal
// characters are dropped. One call at a time for each `k`; any context but NMI,
// without locks.
void keyboard_code(struct keymap *k, u8 code);
// The layout of all keyboards, from the next key on. Any context.
const struct layout *keyboard_layout(void);
void keyboard_use(const struct layout *wanted);
