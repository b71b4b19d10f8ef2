// Terminals: line discipline, job control, window size, over a tty driver.
//
// Lock: tty->lock (interrupt-disabling spinlock; input arrives in interrupts).
#pragma once

#include "kernel/fs/vfs.h"

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
void tty_input(struct tty *t, const char *text, size_t n);
void tty_output_ready(struct tty *t);

void tty_init(void); // makes a tty and a /dev node for each present driver
// Session leader's exit: SIGHUP to the foreground group, detach. tasks_lock not
// held.
void tty_disassociate(struct tty *t, u32 sid);
u32 tty_device_number(struct tty *t); // for /proc/PID/stat
u32 tty_foreground(struct tty *t);
