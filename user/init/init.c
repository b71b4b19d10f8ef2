// init: the first process. It runs the command that tools/vm left in
// /etc/strobe.run, or shells on the consoles, and then powers the machine off.
//
// It adopts and reaps orphans, and obeys the signals of BusyBox's poweroff,
// halt and reboot. There is a single wait, in poll: signals arrive in a pipe.

#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static int signal_pipe[2];

void say(const char *format, ...)
{
    va_list args;

    dprintf(STDERR_FILENO, "init: ");
    va_start(args, format);
    vdprintf(STDERR_FILENO, format, args);
    va_end(args);
    dprintf(STDERR_FILENO, "\n");
}

static void on_signal(int number)
{
    unsigned char byte = number;
    int saved_errno = errno;

    (void)!write(signal_pipe[1], &byte, 1);
    errno = saved_errno;
}

static void catch_signals(void)
{
    static const int signals[] = { SIGCHLD, SIGUSR1, SIGUSR2, SIGTERM };
    struct sigaction action = { .sa_handler = on_signal,
                                .sa_flags = SA_RESTART };

    if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        say("pipe: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        sigaction(signals[i], &action, NULL);
}

void machine_stop(int how)
{
    kill(-1, SIGKILL); // remaining processes would run until power-off
    sync();
    reboot(how);
    say("cannot stop the machine: %s", strerror(errno));
    for (;;)
        pause();
}

static void stop_as_signaled(int number)
{
    switch (number) {
    case SIGUSR1:
        machine_stop(RB_HALT_SYSTEM);
        break;
    case SIGUSR2:
        machine_stop(RB_POWER_OFF);
        break;
    case SIGTERM:
        machine_stop(RB_AUTOBOOT);
        break;
    }
}

void wait_for_event(struct pollfd *fds, int count)
{
    unsigned char number;

    fds[count] = (struct pollfd){ .fd = signal_pipe[0], .events = POLLIN };
    if (poll(fds, count + 1, -1) < 0) {
        for (int i = 0; i <= count; i++)
            fds[i].revents = 0;
    }
    while (read(signal_pipe[0], &number, 1) == 1)
        stop_as_signaled(number);
}

pid_t spawn(char *const argv[], void (*prepare)(void *), void *argument)
{
    pid_t pid = fork();

    if (pid < 0) {
        say("fork: %s", strerror(errno));
        return -1;
    }
    if (pid > 0)
        return pid;

    setsid();
    prepare(argument);
    (void)!chdir(getenv("HOME"));
    execv("/bin/sh", argv);
    say("/bin/sh: %s", strerror(errno));
    _exit(127);
}

int main(void)
{
    catch_signals();
    setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin:/test", 1);
    setenv("HOME", "/root", 1);
    setenv("USER", "root", 1);
    setenv("SHELL", "/bin/sh", 1);
    setenv("TERM", "vt100", 0);
    make_homes();

    if (access(RUN_FILE, R_OK) == 0)
        run_command();
    else
        run_shells();
    machine_stop(RB_POWER_OFF);
}
