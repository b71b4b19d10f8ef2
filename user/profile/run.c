// Running a session: on a program that is started for it, or on a task that
// runs already.
#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define CANNOT_RUN 126 // as shells have it
#define NOT_FOUND 127
#define DRAIN_MS 2000 // for the last records of a session that was stopped

// The kernel stores records here while a DATA_READ is under way.
static _Alignas(8) char stream[64 * 1024];

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static void begin(const struct settings *s, uint32_t flags,
                  struct profile_session *session, struct result *r)
{
    struct sprofile_options options = s->options;

    options.flags = flags;
    if (counts_init(&r->counts) < 0)
        fail(1, "not enough memory");
    if (profile_begin(session, r->task, &options) < 0)
        fail(1, "task %u: %s", r->task, kbox_problem(errno));
}

// Takes one answer. False when the session is over or broken.
static bool take_records(struct profile_session *session, struct result *r,
                         int timeout_ms, int *size)
{
    *size = 0;
    if (profile_request(session, stream, sizeof(stream)) < 0) {
        complain("reading samples: %s", kbox_problem(errno));
        return false;
    }
    int n = profile_answer(session, timeout_ms);
    if (n >= 0) {
        counts_add_stream(&r->counts, stream, n);
        *size = n;
        return true;
    }
    if (errno == EINTR || errno == ETIMEDOUT || errno == EAGAIN)
        return true;
    if (errno != ESHUTDOWN)
        complain("reading samples: %s", kbox_problem(errno));
    return false;
}

static void end(struct profile_session *session, struct result *r)
{
    if (profile_info(session, &r->info) < 0)
        complain("the session's totals: %s", kbox_problem(errno));
    profile_end(session);
}

// --- a program of our own ---------------------------------------------------

// In the child: waits until the parent has begun the session, then becomes the
// program. A byte on `status_fd` says why that failed.
static _Noreturn void become(const struct settings *s, const char *path,
                             int go_fd, int status_fd)
{
    char go;

    if (read(go_fd, &go, 1) != 1)
        _exit(CANNOT_RUN); // the parent could not begin, and has said so
    execv(path, s->command);
    int error = errno;
    (void)!write(status_fd, &error, sizeof(error));
    _exit(CANNOT_RUN);
}

static int exit_status(pid_t child)
{
    int status;

    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void open_pipes(int go[2], int status[2])
{
    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(status, O_CLOEXEC) < 0)
        fail(1, "pipe: %s", strerror(errno));
}

void run_program(const struct settings *s, struct result *r)
{
    int go[2], status[2], size, error = 0;
    struct profile_session session;

    r->program = program_find(s->command[0]);
    if (r->program == NULL)
        fail(errno == EACCES ? CANNOT_RUN : NOT_FOUND, "%s: %s", s->command[0],
             errno == EACCES ? "this file is not a program (chmod +x?)"
                             : "there is no such program");
    open_pipes(go, status);
    pid_t child = fork();
    if (child < 0)
        fail(1, "fork: %s", strerror(errno));
    if (child == 0) {
        close(go[1]);
        become(s, r->program, go[0], status[1]);
    }
    close(go[0]);
    close(status[1]);

    // ^C is for the program; what has been measured until then is reported.
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    r->task = child;
    begin(s, SPROFILE_O_FROM_EXEC, &session, r);
    (void)!write(go[1], "", 1);

    while (take_records(&session, r, -1, &size))
        ;
    end(&session, r);
    r->status = exit_status(child);
    if (read(status[0], &error, sizeof(error)) == sizeof(error))
        fail(CANNOT_RUN, "%s: %s", r->program,
             error == ENOEXEC ? "this is not a program for this machine"
                              : strerror(error));
    close(go[1]);
    close(status[0]);
}

// --- a task that runs already -----------------------------------------------

static struct termios terminal_before;
static bool terminal_changed;

static void restore_terminal(void)
{
    if (terminal_changed)
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
    terminal_changed = false;
}

// Makes single keys readable if this is the terminal's foreground job.
static void watch_keys(void)
{
    if (tcgetpgrp(STDIN_FILENO) != getpgrp() ||
        tcgetattr(STDIN_FILENO, &terminal_before) < 0)
        return;
    struct termios t = terminal_before;
    t.c_lflag &= ~(ICANON | ECHO);
    terminal_changed = tcsetattr(STDIN_FILENO, TCSANOW, &t) == 0;
    atexit(restore_terminal);
}

// Sleeps until records, a signal or a key come. True to go on.
static bool wait_for_event(const struct profile_session *session)
{
    struct pollfd fds[2] = {
        { .fd = session->phone, .events = POLLIN },
        { .fd = terminal_changed ? STDIN_FILENO : -1, .events = POLLIN },
    };
    char key;

    if (interrupted || poll(fds, 2, -1) < 0)
        return !interrupted;
    if (fds[1].revents != 0 &&
        (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
        return false;
    return !interrupted;
}

// Stops sampling and takes what is still in the rings.
static void drain(struct profile_session *session, struct result *r)
{
    int size;

    if (profile_pause(session, true) < 0)
        return;
    do {
        if (!take_records(session, r, DRAIN_MS, &size))
            return;
    } while (size > 0);
}

void run_task(const struct settings *s, struct result *r)
{
    struct profile_session session;
    struct sigaction catch = { .sa_handler = on_interrupt }; // no SA_RESTART
    int size;

    r->task = s->task;
    begin(s, 0, &session, r);
    r->program = program_of_task(r->task);
    sigaction(SIGINT, &catch, NULL);
    sigaction(SIGTERM, &catch, NULL);
    sigaction(SIGHUP, &catch, NULL);
    watch_keys();
    complain("task %u%s%s: until it ends, or ^C%s", r->task,
             r->program != NULL ? " " : "",
             r->program != NULL ? r->program : "",
             terminal_changed ? " or q" : "");

    bool alive = true;
    while (alive) {
        if (profile_request(&session, stream, sizeof(stream)) < 0 ||
            !wait_for_event(&session)) {
            drain(&session, r);
            break;
        }
        alive = take_records(&session, r, 0, &size);
    }
    restore_terminal();
    end(&session, r);
}
