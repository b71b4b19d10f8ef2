// Drivers of terminals, and what they call.
#pragma once

#include "lib/set.h"

struct tty;

// The device below: a UART or the VGA screen.
struct tty_driver {
    const char *name; // ttyS0
    u32 rdev;
    u16 rows, cols; // 0: unknown
    // Sends up to n bytes, returns how many were taken (0: full; call
    // tty_output_ready later). Any context, interrupts off.
    size_t (*write)(struct tty_driver *d, const char *text, size_t n);
    bool (*present)(struct tty_driver *d);
    void (*start)(struct tty_driver *d); // interrupts may come from here on
    struct tty *tty;                     // set by the tty layer
    // Optional: stop (resume) taking characters from the line, so that the
    // sender waits. Any context, interrupts off.
    void (*throttle)(struct tty_driver *d, bool on);
};
// `write` and `throttle` are called with the terminal's lock held: a driver
// calls the functions below without a lock that these take.
#define TTY_DRIVER(d) LINKER_SET_ADD(tty_drivers, d)

// From the driver's interrupt: characters came in; there is room again.
UPCALL void tty_input(struct tty *t, const char *text, size_t n);
UPCALL void tty_output_ready(struct tty *t);

// Requests of a person at a machine that may hang: by a break on the serial
// line, or by Alt+SysRq on the keyboard.

// The request with this letter, as Linux names them: l(ocate the CPUs),
// t(asks), m(emory), b(oot again); any other one prints what there is. Any
// context but NMI, for an interrupt handler without locks. Prints on the
// consoles.
UPCALL void sysrq(char letter);

// The line said a break, which is request l, and starts a request by letter.
UPCALL void sysrq_break(void);
// The next characters from the line: true if this one was a request's letter,
// which is nobody's input then.
UPCALL bool sysrq_letter(char c);
