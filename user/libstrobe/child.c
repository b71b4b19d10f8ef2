#define _GNU_SOURCE // pipe2
#include "child.h"

#include "strobe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT_RUN 126 // exit status, as in shells
#define NOT_FOUND 127

// In the child: waits for child_go, then executes the program. If that fails,
// the errno is written to `status_fd`.
static _Noreturn void exec_when_released(const char *path, char **command,
                                         int go_fd, int status_fd)
{
    char go;

    if (read(go_fd, &go, 1) != 1)
        _exit(CANNOT_RUN); // the parent failed to begin, and reported it
    execv(path, command);
    int error = errno;
    (void)!write(status_fd, &error, sizeof(error));
    _exit(CANNOT_RUN);
}

void child_start(struct child *c, char **command)
{
    int go[2], status[2];

    *c = (struct child){ 0 };

    c->path = program_find(command[0]);
    if (!c->path)
        fail(errno == EACCES ? CANNOT_RUN : NOT_FOUND, "%s: %s", command[0],
             errno == EACCES ? "not executable (chmod +x?)"
                             : "no such program");
    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(status, O_CLOEXEC) < 0)
        fail(1, "pipe: %s", strerror(errno));
    c->pid = fork();
    if (c->pid < 0)
        fail(1, "fork: %s", strerror(errno));
    if (c->pid == 0) {
        close(go[1]);
        exec_when_released(c->path, command, go[0], status[1]);
    }
    close(go[0]);
    close(status[1]);
    c->go_fd = go[1];
    c->status_fd = status[0];
    // ^C is meant for the program; profile then reports what it has measured.
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

void child_go(struct child *c)
{
    (void)!write(c->go_fd, "", 1);
}

static int ended; // a pipe's end

static void on_child(int signal)
{
    (void)signal;
    int saved = errno;
    (void)!write(ended, "", 1);
    errno = saved;
}

int child_watch(void)
{
    struct sigaction child = { .sa_handler = on_child };
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        fail(1, "pipe: %s", strerror(errno));
    ended = ends[1];
    sigaction(SIGCHLD, &child, NULL);
    return ends[0];
}

bool child_has_ended(struct child *c)
{
    if (!c->ended)
        c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
    return c->ended;
}

static int exit_status(const struct child *c)
{
    int status = c->status;

    while (!c->ended && waitpid(c->pid, &status, 0) < 0) {
        if (errno != EINTR)
            return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int child_end(struct child *c)
{
    int error = 0, status = exit_status(c);

    if (read(c->status_fd, &error, sizeof(error)) == sizeof(error))
        fail(CANNOT_RUN, "%s: %s", c->path,
             error == ENOEXEC ? "not a program for this machine"
                              : strerror(error));
    close(c->go_fd);
    close(c->status_fd);
    return status;
}
