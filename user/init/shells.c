// The interactive part of init: a login shell on each console.

#include "init.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct console {
    const char *path, *term;
    pid_t shell;
};

static struct console consoles[] = {
    { .path = "/dev/ttyS0", .term = "vt100" },
    { .path = "/dev/tty0", .term = "linux" },
};

#define CONSOLES (sizeof(consoles) / sizeof(*consoles))

// A serial line does not report the size of the terminal at its other end.
static void set_terminal_size(void)
{
    struct winsize size = { .ws_row = 24, .ws_col = 80 };
    char term[32] = "vt100";
    FILE *file = fopen(TTY_FILE, "re");

    if (file) {
        if (fscanf(file, "%hu %hu %31s", &size.ws_row, &size.ws_col, term) == 3)
            setenv("TERM", term, 1);
        fclose(file);
    }
    ioctl(STDIN_FILENO, TIOCSWINSZ, &size);
}

static void enter_console(void *argument)
{
    const struct console *console = argument;
    int fd = open(console->path, O_RDWR);

    if (fd < 0)
        _exit(127);
    ioctl(fd, TIOCSCTTY, 0);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        dup2(fd, i);
    if (fd > STDERR_FILENO)
        close(fd);
    setenv("TERM", console->term, 1);
    if (console == &consoles[0])
        set_terminal_size();
}

static int is_console_shell(pid_t pid)
{
    for (size_t i = 0; i < CONSOLES; i++) {
        if (consoles[i].shell == pid)
            return 1;
    }
    return 0;
}

// Whether the kernel's arguments contain the word "login".
static bool login_requested(void)
{
    char text[4096] = "";
    FILE *file = fopen("/proc/cmdline", "re");
    bool found = false;

    if (!file)
        return false;
    if (fgets(text, sizeof(text), file)) {
        for (char *word = strtok(text, " \n"); word != NULL;
             word = strtok(NULL, " \n"))
            found |= strcmp(word, "login") == 0;
    }
    fclose(file);
    return found;
}

void run_shells(void)
{
    char *shell[] = { "-sh", NULL };
    char *login[] = { "sh", "-c", "while :; do /bin/login; done", NULL };
    char **argv = login_requested() ? login : shell;
    struct pollfd signals[1];
    int started = 0;

    for (size_t i = 0; i < CONSOLES; i++) {
        if (access(consoles[i].path, R_OK | W_OK) < 0)
            continue;
        consoles[i].shell = spawn(argv, enter_console, &consoles[i]);
        started += consoles[i].shell > 0;
    }
    if (started == 0) {
        say("no console to start a shell on");
        return;
    }
    link_hello();

    for (;;) {
        pid_t pid;

        wait_for_event(signals, 0);
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
            if (is_console_shell(pid))
                return;
        }
    }
}
