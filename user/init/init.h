// What the parts of init share.
#pragma once

#include <poll.h>
#include <sys/types.h>

// Files that tools/vm lays over the root.
#define RUN_FILE "/etc/strobe.run" // a shell line to run
#define GET_FILE "/etc/strobe.get" // present if /out is to be sent back
#define TTY_FILE "/etc/strobe.tty" // "ROWS COLUMNS TERM" of the terminal

// Makes the home directories of /etc/passwd, each its user's.
void make_homes(void);

// Prints one line on the console.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Starts /bin/sh with `argv` in a session of its own, after `prepare(argument)`
// in the child. Returns its id, or -1 after saying why not.
pid_t spawn(char *const argv[], void (*prepare)(void *), void *argument);

// Waits until one of `count` descriptors is ready or a signal came. `fds` has
// room for one more.
void wait_for_event(struct pollfd *fds, int count);

// Stops the machine: `how` is one of reboot(2)'s RB_ values. Does not return.
void machine_stop(int how) __attribute__((noreturn));

// Opens the second serial port and says hello to tools/vm. 0 or -1.
int link_hello(void);

// Runs the command of RUN_FILE for tools/vm and returns when it has ended and
// everything about it has been sent.
void run_command(void);

// Runs a login shell on each console and returns when one of them ends.
void run_shells(void);
