// Terminal drivers, and the functions that they call.
#pragma once

#include "lib/set.h"

struct tty;

// The device of a terminal: a UART or the VGA screen.
struct tty_driver {
    const char *name; // ttyS0
    u32 rdev;
    u16 rows, cols; // 0: unknown
    // Sends up to n bytes, returns how many were taken (0: full; call
    // tty_output_ready later). Any context, interrupts off.
    size_t (*write)(struct tty_driver *d, const char *text, size_t n);
    bool (*present)(struct tty_driver *d);
    void (*start)(struct tty_driver *d); // interrupts may arrive from here on
    struct tty *tty;                     // set by the tty layer
    // Optional: stop (resume) taking characters from the line, so that the
    // sender waits. Any context, interrupts off.
    void (*throttle)(struct tty_driver *d, bool on);
    // Optional: shows lines that were shown earlier (steps < 0) or later; 0:
    // the present. Any context but NMI, interrupts on or off, without locks.
    void (*look)(struct tty_driver *d, int steps);
};
// `write` and `throttle` are called with the terminal's lock held: a driver
// must not hold, while it calls the functions below, a lock that these two
// take.
#define TTY_DRIVER(d) LINKER_SET_ADD(tty_drivers, d)

// From the driver's interrupt: characters have arrived; there is room for
// output again.
UPCALL void tty_input(struct tty *t, const char *text, size_t n);
UPCALL void tty_output_ready(struct tty *t);

// Requests (magic SysRq) of an operator at a machine that may hang: by a break
// on the serial line, or by Alt+SysRq on the keyboard.

// The request with this letter, named as in Linux: l(ocate the CPUs), t(asks),
// m(emory), b(oot again); any other letter prints a list of them. Any context
// but NMI; called by an interrupt handler without locks. Prints on the
// consoles.
UPCALL void sysrq(char letter);

// A break arrived on the line: it is request l, and the prefix of a request by
// letter.
UPCALL void sysrq_break(void);
// For the next characters from the line: true if `c` was a request's letter,
// which must not be taken as input then.
UPCALL bool sysrq_letter(char c);
