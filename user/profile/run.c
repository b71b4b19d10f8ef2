// Runs a session for a program that profile starts, or for a running task.
#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "user/libprofile/running_tasks.h"
#include "user/libstrobe/child.h"

#define KEY_WAIT_MS 1000

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static void begin(const struct settings *s, uint32_t flags, struct result *r)
{
    uint32_t bytes = events_ring_bytes(&s->options, s->ring_seconds);

    for (uint32_t i = 0; i < r->events.count; i++)
        r->events.list[i].asked.ring_bytes = bytes;
    events_begin(&r->events, r->task, flags);
    waits_begin(&r->waits);
}

// With children sampled there is no check, since a child may run while the
// task waits.
static void check_waits(const struct settings *s, struct result *r)
{
    if (!(s->options.flags & SPROFILE_O_CHILDREN))
        waits_check(&r->waits, r->task);
}

// --- a program that profile starts ------------------------------------------

void run_program(const struct settings *s, struct result *r)
{
    struct reading reading = { .events = &r->events,
                               .recording = { .path = s->output } };
    struct child child;

    child_start(&child, s->command);
    r->program = child.path;
    r->task = child.pid;
    begin(s, SPROFILE_O_FROM_EXEC, r);
    recording_begin(&reading.recording, s->argv, &r->events);
    running_hold(&r->events, child.path);
    child_go(&child);
    while (reading_take(&reading, WAITS_CHECK_MS, -1))
        check_waits(s, r);
    if (!reading_end(&reading))
        r->status = 1;
    int status = child_end(&child);
    if (r->status == 0)
        r->status = status;
}

// --- a running task ---------------------------------------------------------

static struct termios terminal_before;
static bool terminal_changed;

static void restore_terminal(void)
{
    if (terminal_changed)
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
    terminal_changed = false;
}

// Sets the terminal to read single keys if profile is its foreground job.
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

// The state shown on the status line, which is overwritten in place.
struct live {
    const struct settings *s;
    struct reading *reading;
    struct result *r;
    bool paused, ended;
};

static void show_status(const struct live *l)
{
    const struct events *all = &l->r->events;
    uint64_t taken = 0, lost = 0;

    if (!terminal_changed || !isatty(STDERR_FILENO))
        return;
    if (!l->ended)
        reading_info(l->reading);
    for (uint32_t i = 0; i < all->count; i++) {
        taken += all->list[i].info.taken;
        lost += all->list[i].info.lost;
    }
    fprintf(stderr,
            "\r%.1f s: %llu samples, %llu lost%s (p print, %sq quit)\33[K",
            all->list[0].info.elapsed_ns / 1e9, (unsigned long long)taken,
            (unsigned long long)lost,
            l->ended    ? "; ended"
            : l->paused ? "; paused"
                        : "",
            l->ended ? "" : "a pause, e end, ");
}

static void clear_status(void)
{
    if (terminal_changed && isatty(STDERR_FILENO))
        fputs("\r\33[K", stderr);
}

// Paused, so that the samples and the exact times are those of one interval.
static void print_now(struct live *l)
{
    clear_status();
    if (!l->ended) {
        reading_drain(l->reading);
        reading_info(l->reading);
        reading_pause(l->reading, l->paused);
    }
    report(l->s, l->r);
    fflush(stdout);
}

// Ends the sessions; afterwards the samples can only be shown.
static void end(struct live *l)
{
    if (l->ended)
        return;
    reading_drain(l->reading);
    if (!reading_end(l->reading))
        l->r->status = 1;
    l->ended = true;
}

// Returns false when the run is over.
static bool take_key(struct live *l)
{
    char key;

    if (read(STDIN_FILENO, &key, 1) != 1)
        return false;
    switch (key) {
    case 'p':
        print_now(l);
        return true;
    case 'a':
        if (!l->ended && reading_pause(l->reading, !l->paused))
            l->paused = !l->paused;
        return true;
    case 'e':
        end(l);
        return true;
    case 'q':
        end(l);
        clear_status();
        restore_terminal();
        exit(l->r->status);
    }
    return true;
}

static bool has_key(int timeout_ms)
{
    struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };

    return terminal_changed && poll(&keys, 1, timeout_ms) > 0;
}

// Handles the next records, signal or key. Returns false when the run is over.
static bool go_on(struct live *l)
{
    show_status(l);
    if (interrupted)
        return false;
    int keys = terminal_changed ? STDIN_FILENO : -1;
    if (!l->ended) {
        if (!reading_take(l->reading, WAITS_CHECK_MS, keys))
            return false;
        if (!l->paused)
            check_waits(l->s, l->r);
    }
    if (has_key(l->ended ? KEY_WAIT_MS : 0) && !take_key(l))
        return false;
    return !interrupted;
}

void run_task(const struct settings *s, struct result *r)
{
    struct reading reading = { .events = &r->events,
                               .recording = { .path = s->output } };
    struct sigaction catch = { .sa_handler = on_interrupt }; // no SA_RESTART

    sigaction(SIGINT, &catch, NULL);
    sigaction(SIGTERM, &catch, NULL);
    sigaction(SIGHUP, &catch, NULL);
    r->task = s->task;
    begin(s, 0, r);
    r->program = program_of_task(r->task);
    bool children = s->options.flags & SPROFILE_O_CHILDREN;
    running_add(&r->events, children ? 0 : r->task);
    recording_begin(&reading.recording, s->argv, &r->events);
    watch_keys();
    complain("task %u%s%s: until it ends, or ^C", r->task,
             r->program != NULL ? " " : "",
             r->program != NULL ? r->program : "");

    struct live live = { .s = s, .reading = &reading, .r = r };
    while (go_on(&live))
        ;
    end(&live);
    clear_status();
    restore_terminal();
}
