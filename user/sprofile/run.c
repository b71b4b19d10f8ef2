// Runs a system session while a command runs, for some seconds, or until ^C.
// (A command gets ^C, too; the session ends when it has ended.)
#define _GNU_SOURCE // pipe2
#include "sprofile.h"

#include "user/libprofile/running_tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REFRESH_MS 2000
#define RING_BYTES (1 << 20)
#define RING_BYTES_DEEP (4 << 20)
#define CANNOT_RUN 126 // exit status, as in shells
#define NOT_FOUND 127

static volatile sig_atomic_t interrupted;
static int wakeup[2]; // a pipe: wakes poll() even if the signal preceded it

// A write to a full pipe may fail: poll() wakes all the same.
static void wake(void)
{
    int saved = errno;
    ssize_t n = write(wakeup[1], "", 1);
    (void)n;
    errno = saved;
}

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
    wake();
}

static void on_child(int signal)
{
    (void)signal;
    wake();
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

static pid_t start(char *const *command)
{
    pid_t child = fork();

    if (child < 0)
        fail(1, "fork: %s", strerror(errno));
    if (child > 0) {
        signal(SIGINT, SIG_IGN); // ^C is meant for the command
        return child;
    }
    signal(SIGINT, SIG_DFL);
    execvp(command[0], command);
    int error = errno;
    complain("%s: %s", command[0], strerror(error));
    _exit(error == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

// Returns true when the command has ended, with its exit status in *result.
static bool ended(pid_t child, int *result)
{
    int status;

    if (child == 0 || waitpid(child, &status, WNOHANG) != child)
        return false;
    *result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

static void watch_signals(void)
{
    struct sigaction stop = { .sa_handler = on_interrupt }; // no SA_RESTART
    struct sigaction child = { .sa_handler = on_child };

    if (pipe2(wakeup, O_CLOEXEC | O_NONBLOCK) < 0)
        fail(1, "pipe: %s", strerror(errno));
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    sigaction(SIGCHLD, &child, NULL);
}

// Discards the bytes that signal handlers have written so far.
static void drain_wakeups(void)
{
    char bytes[64];

    while (read(wakeup[0], bytes, sizeof(bytes)) > 0)
        ;
}

static int wait_ms(int64_t end, int64_t next)
{
    int64_t wait = (end < next ? end : next) - now_ms();

    return wait < 0 ? 0 : wait > REFRESH_MS ? REFRESH_MS : (int)wait;
}

static void begin(const struct settings *s, struct result *r)
{
    uint32_t bytes = events_ring_bytes(&s->options, s->ring_seconds);

    if (bytes == 0)
        bytes =
            s->options.flags & SPROFILE_O_DEEP ? RING_BYTES_DEEP : RING_BYTES;
    for (uint32_t i = 0; i < r->events.count; i++)
        r->events.list[i].asked.ring_bytes = bytes;
    watch_signals();
    events_begin(&r->events, 0, 0);
    running_add(&r->events, 0);
}

void run(const struct settings *s, struct result *r,
         void (*every)(const struct settings *s, struct result *r))
{
    struct reading reading = { .events = &r->events,
                               .recording = { .path = s->output } };

    begin(s, r);
    recording_begin(&reading.recording, s->argv, &r->events);
    pid_t child = s->command != NULL ? start(s->command) : 0;
    int64_t start_ms = now_ms();
    int64_t next = every != NULL ? start_ms + REFRESH_MS : INT64_MAX;
    int64_t end = s->seconds > 0 ? start_ms + s->seconds * 1000ll : INT64_MAX;

    while (!interrupted && now_ms() < end && !ended(child, &r->status)) {
        if (!reading_take(&reading, wait_ms(end, next), wakeup[0]))
            break;
        drain_wakeups();
        if (every && now_ms() >= next) {
            reading_info(&reading);
            every(s, r);
            next = now_ms() + REFRESH_MS;
        }
    }
    reading_drain(&reading);
    if (every && r->shown_ns == 0) {
        reading_info(&reading);
        every(s, r);
    }
    if (!reading_end(&reading))
        r->status = 1;
}
