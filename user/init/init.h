// Declarations shared by the parts of init.
#pragma once

#include <poll.h>
#include <sys/types.h>

// Files that tools/vm adds to the root file system.
#define RUN_FILE "/etc/strobe.run" // a shell line to run
#define GET_FILE "/etc/strobe.get" // present if /out must be sent to the host
#define TTY_FILE "/etc/strobe.tty" // "ROWS COLUMNS TERM" of the terminal

// Creates the home directories of /etc/passwd, each owned by its user.
void make_homes(void);

// Prints one line on the console.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Starts /bin/sh with `argv` in a new session, after calling
// `prepare(argument)` in the child. Returns its id, or -1 after printing an
// error message.
pid_t spawn(char *const argv[], void (*prepare)(void *), void *argument);

// Waits until one of `count` descriptors is ready or a signal was received.
// `fds` has room for one more entry.
void wait_for_event(struct pollfd *fds, int count);

// Stops the machine: `how` is one of reboot(2)'s RB_ values. Does not return.
void machine_stop(int how) __attribute__((noreturn));

// Opens the second serial port and sends the hello frame to tools/vm. Returns
// 0, or -1.
int link_hello(void);

// Runs the command of RUN_FILE for tools/vm. Returns when it has ended and all
// its results were sent.
void run_command(void);

// Runs a login shell on each console and returns when one of them ends.
void run_shells(void);
