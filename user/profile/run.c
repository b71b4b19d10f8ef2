// Running a session: on a program that is started for it, or on a task that
// runs already.
#include "profile.h"

#include "user/libprofile/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "user/libprofile/mapping.h"

#define RATE_ASSUMED 1000
#define SAMPLE_BYTES 40
#define STACK_SAMPLE_BYTES 200 // of about 30 frames

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

// Bytes of a ring that holds the samples of so many seconds.
static uint32_t ring_bytes(const struct settings *s)
{
    const uint64_t max = 16 << 20;
    uint32_t hz = s->options.rate_hz != 0 ? s->options.rate_hz : RATE_ASSUMED;
    bool stacks = s->options.flags & SPROFILE_O_STACKS;
    uint64_t bytes = (uint64_t)s->seconds * hz *
                     (stacks ? STACK_SAMPLE_BYTES : SAMPLE_BYTES);

    return bytes < max ? bytes : max;
}

static void begin(const struct settings *s, uint32_t flags,
                  struct profile_session *session, struct result *r)
{
    struct sprofile_options options = s->options;

    options.flags |= flags;
    options.ring_bytes = ring_bytes(s);
    if (samples_init(&r->samples, program_read) < 0)
        fail(1, "not enough memory");
    r->samples.vdso = getauxval(AT_SYSINFO_EHDR);
    if (profile_begin(session, r->task, &options) == 0)
        return;
    char why[SOURCE_PROBLEM_SIZE];
    sources_problem(why, sizeof(why), &options, errno);
    fail(1, "task %u: %s", r->task, why);
}

static void record(const struct settings *s, struct profile_session *session,
                   struct result *r)
{
    r->recording.path = s->output;
    recording_begin(&r->recording, s->argv, session, &s->options, &r->samples);
}

static struct reading reading_of(struct profile_session *session,
                                 struct result *r)
{
    return (struct reading){ session, &r->samples, &r->recording };
}

// --- a program of our own ---------------------------------------------------

void run_program(const struct settings *s, struct result *r)
{
    int size;
    struct profile_session session;
    struct child child;

    child_start(&child, s->command);
    r->program = child.path;
    r->task = child.pid;
    begin(s, SPROFILE_O_FROM_EXEC, &session, r);
    record(s, &session, r);
    child_go(&child);
    struct reading reading = reading_of(&session, r);
    while (reading_take(&reading, -1, &size))
        ;
    if (!reading_end(&reading, &r->info))
        r->status = 1;
    int status = child_end(&child);
    if (r->status == 0)
        r->status = status;
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

// What goes on, on one line that is written over.
struct live {
    const struct settings *s;
    const struct reading *reading;
    struct result *r;
    bool paused;
};

static void show_status(const struct live *l)
{
    struct sprofile_info i;

    if (!terminal_changed || !isatty(STDERR_FILENO) ||
        profile_info(l->reading->session, &i) < 0)
        return;
    fprintf(stderr,
            "\r%.1f s: %llu samples, %llu lost%s (p print, a pause, e end, "
            "q quit)\33[K",
            i.elapsed_ns / 1e9, (unsigned long long)i.taken,
            (unsigned long long)i.lost, l->paused ? "; paused" : "");
}

static void clear_status(void)
{
    if (terminal_changed && isatty(STDERR_FILENO))
        fputs("\r\33[K", stderr);
}

static void print_now(struct live *l)
{
    clear_status();
    if (profile_info(l->reading->session, &l->r->info) == 0)
        report(l->s, l->r);
    fflush(stdout);
}

// False: that is the end of it.
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
        if (profile_pause(l->reading->session, !l->paused) == 0)
            l->paused = !l->paused;
        return true;
    case 'e':
        return false;
    case 'q':
        clear_status();
        restore_terminal();
        exit(reading_end(l->reading, &l->r->info) ? l->r->status : 1);
    }
    return true;
}

// Sleeps until records, a signal or a key come. True to go on.
static bool wait_for_event(struct live *l)
{
    struct pollfd fds[2] = {
        { .fd = l->reading->session->phone, .events = POLLIN },
        { .fd = terminal_changed ? STDIN_FILENO : -1, .events = POLLIN },
    };

    show_status(l);
    if (interrupted || poll(fds, 2, -1) < 0)
        return !interrupted;
    if (fds[1].revents != 0 && !take_key(l))
        return false;
    return !interrupted;
}

// What it executes later the kernel tells.
static void runs_already(struct result *r)
{
    struct program p = { .task = r->task };
    const char *slash = strrchr(r->program, '/');
    struct mapping m;

    mapping_read(&m, r->program);
    p.image =
        images_add(&r->samples.images, r->program, m.build_id, m.build_id_size);
    snprintf(p.name, sizeof(p.name), "%s",
             slash != NULL ? slash + 1 : r->program);
    programs_add(&r->samples.programs, &p);
}

void run_task(const struct settings *s, struct result *r)
{
    struct profile_session session;
    struct sigaction catch = { .sa_handler = on_interrupt }; // no SA_RESTART
    int size;

    r->task = s->task;
    begin(s, 0, &session, r);
    r->program = program_of_task(r->task);
    if (r->program != NULL)
        runs_already(r);
    record(s, &session, r);
    sigaction(SIGINT, &catch, NULL);
    sigaction(SIGTERM, &catch, NULL);
    sigaction(SIGHUP, &catch, NULL);
    watch_keys();
    complain("task %u%s%s: until it ends, or ^C", r->task,
             r->program != NULL ? " " : "",
             r->program != NULL ? r->program : "");

    struct reading reading = reading_of(&session, r);
    struct live live = { .s = s, .reading = &reading, .r = r };
    bool alive = true;
    while (alive) {
        if (profile_request(&session) < 0 || !wait_for_event(&live)) {
            reading_drain(&reading);
            break;
        }
        alive = reading_take(&reading, 0, &size);
    }
    clear_status();
    restore_terminal();
    if (!reading_end(&reading, &r->info))
        r->status = 1;
}
