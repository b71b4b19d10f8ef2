#define _GNU_SOURCE // pipe2
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/libremote/message.h"

#define WORDS_MAX (REMOTE_REQUEST_MAX / 2 + 8)
#define PATIENCE_MS 5000 // after ^C
#define NOT_FOUND 127    // exit status, as in shells

// Makes the command line; `path` is that of its file.
static void make_command(const char *command[WORDS_MAX], uint8_t kind,
                         const char *path, const char *words, size_t size)
{
    static const char *const record[] = { "sprofile", "-q", "-o", NULL };
    static const char *const top[] = { "top", "-b", NULL };
    size_t count = 0;

    for (const char *const *w = kind == REMOTE_RECORD ? record : top; *w; w++)
        command[count++] = *w;
    if (kind == REMOTE_RECORD)
        command[count++] = path;
    for (size_t at = 0; at < size && count < WORDS_MAX - 1;
         at += strlen(words + at) + 1)
        command[count++] = words + at;
    command[count] = NULL;
}

static _Noreturn void execute(const char *const *command, int file, int text)
{
    int none = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    dup2(none, STDIN_FILENO);
    dup2(text, STDOUT_FILENO);
    dup2(text, STDERR_FILENO);
    fcntl(file, F_SETFD, 0); // it opens /proc/self/fd/N
    execvp(command[0], (char *const *)command);
    fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
    _exit(NOT_FOUND);
}

int program_start(struct program *p, uint8_t kind, const char *words,
                  size_t words_size)
{
    const char *command[WORDS_MAX];
    char path[32];
    int file[2], text[2];

    *p = (struct program){ .file = -1, .text = -1 };
    if (pipe2(file, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    if (pipe2(text, O_CLOEXEC | O_NONBLOCK) < 0) {
        close(file[0]);
        close(file[1]);
        return -1;
    }
    // The program's ends wait for room.
    fcntl(file[1], F_SETFL, 0);
    fcntl(text[1], F_SETFL, 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file[1]);
    make_command(command, kind, path, words, words_size);
    p->pid = fork();
    if (p->pid == 0)
        execute(command, file[1], text[1]);
    close(file[1]);
    close(text[1]);
    p->file = file[0];
    p->text = text[0];
    if (p->pid > 0) {
        setpgid(p->pid, p->pid);
        return 0;
    }
    p->pid = 0;
    program_kill(p);
    return -1;
}

void program_stop(struct program *p, uint64_t now)
{
    if (p->pid == 0 || p->ended)
        return;
    if (p->stopped_ms == 0) {
        p->stopped_ms = now;
        kill(-p->pid, SIGINT);
    } else if (now - p->stopped_ms > PATIENCE_MS) {
        kill(-p->pid, SIGKILL);
    }
}

bool program_ended(struct program *p)
{
    int status;

    if (p->pid == 0 || p->ended)
        return p->ended;
    if (waitpid(p->pid, &status, WNOHANG) != p->pid)
        return false;
    kill(-p->pid, SIGKILL);
    p->ended = true;
    p->status =
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void program_kill(struct program *p)
{
    if (p->pid > 0 && !p->ended) {
        kill(-p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
    }
    close_end(&p->file);
    close_end(&p->text);
    p->pid = 0;
    p->ended = false;
}
