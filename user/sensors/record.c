// sensors record: writes the values of sensors into a file, at an interval, and
// all events of lists and rings. It only reads the sensors: what it is too slow
// for is counted in the file.
//
// The file has whole chunks in the order of what happened, so it is of use up
// to where it was cut off.
#define _GNU_SOURCE
#include "sensors.h"

#include "user/libstrobe/child.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/sensor_recorder.h"
#include "user/libstrobe/strobe.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <strobe/sensor_recording.h>

#define NS 1000000000u

static struct settings {
    const char *file;
    uint64_t interval_ns, duration_ns; // duration 0: no limit
} settings = { .interval_ns = RECORDER_INTERVAL_NS };
static const struct tool_option options[] = {
    { 'o', "output", "file", "The file to write", .text = &settings.file },
    { 'i', "interval", "seconds", "Between samples (0.001 to 3600; 0.1)",
      .take = recorder_take_duration, .arg = &settings.interval_ns },
    { 'd', "duration", "seconds", "End after this time",
      .take = recorder_take_duration, .arg = &settings.duration_ns },
    { 0 },
};
static const struct tool tool = {
    .usage = "sensors record -o FILE [OPTIONS] PATH... [-- COMMAND...]",
    .options = options,
    .notes =
        "Ends with the command, after the duration, at ^C, or when all sensors "
        "are\nclosed. A sensor that the command creates is recorded from its "
        "first event on.\nThe exit status is the command's (130 after ^C), or "
        "0. "
        "`strobe sensors FILE` and `sensors FILE` print the "
        "file.\n",
};

static struct sensor_recorder recorder;

// --- the file ---------------------------------------------------------------

static FILE *out;

static void must_write(bool written)
{
    uint64_t ms = (recorder_now_ns() - recorder.begun_ns) / 1000000;

    if (!written)
        fail(1,
             "%s: %s; it has what was recorded in the first %" PRIu64
             ".%03" PRIu64 " s",
             settings.file, strerror(errno), ms / 1000, ms % 1000);
}

static void write_piece(void *arg, const void *bytes, size_t size)
{
    (void)arg;
    must_write(fwrite(bytes, size, 1, out) == 1);
}

static struct sensor_wide wide(uint64_t n)
{
    return (struct sensor_wide){ (uint32_t)n, (uint32_t)(n >> 32) };
}

// Writes the TSC's rate to the head. Any session reports it.
static void put_rate(struct recording_head *h)
{
    struct sprofile_count_options one = { .events = 1,
                                          .event = { "task-clock" } };
    struct profile_session s;
    struct sprofile_counts counts;

    if (profile_count_begin(&s, (uint32_t)getpid(), &one) < 0)
        return;
    if (profile_count_read(&s, &counts) >= 0) {
        h->tsc_hz = wide(counts.tsc_hz);
        h->tsc_error_ppm = counts.clock.tsc_error_ppm;
    }
    profile_end(&s);
}

static void put_head(uint64_t interval)
{
    struct recording_head h = { .magic = RECORDING_MAGIC,
                                .version = RECORDING_VERSION,
                                .bytes = sizeof(h),
                                .interval_ns = wide(interval) };

    put_rate(&h);
    write_piece(NULL, &h, sizeof(h));
}

static void put_end(void)
{
    struct recording_chunk c = { RECORDING_END, 0 };

    write_piece(NULL, &c, sizeof(c));
    must_write(fclose(out) == 0);
}

// --- the recording ----------------------------------------------------------

// Samples all. False: all are done.
static bool sample_all(bool awaited)
{
    bool some = false;

    for (uint32_t i = 0; i < recorder.count; i++) {
        struct sensor_source *s = recorder.sources[i];
        if (!s->open)
            recorder_open(&recorder, s, awaited);
        some |= !s->open;
    }
    some |= recorder_sample(&recorder);
    must_write(fflush(out) == 0);
    return some;
}

// Sleeps until then, or a signal. True: one that asks to end.
static bool sleep_until(uint64_t ns, const sigset_t *signals)
{
    uint64_t now = recorder_now_ns();

    if (ns <= now)
        return false;
    struct timespec t = { (time_t)((ns - now) / NS), (long)((ns - now) % NS) };
    int signal = sigtimedwait(signals, NULL, &t);
    return signal == SIGINT || signal == SIGTERM;
}

static void record(uint64_t interval, uint64_t end, struct child *child)
{
    sigset_t signals;
    bool asked = false;

    if (!child)
        signal(SIGINT, SIG_DFL); // background jobs begin with it ignored
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    for (uint64_t next = recorder.begun_ns;; next += interval) {
        bool ended = asked || (child && child_has_ended(child)) ||
                     recorder_now_ns() >= end;
        bool some = sample_all(child && !ended);
        if (ended || (!some && !child))
            break;
        if (recorder_now_ns() > next + interval) // it was not fast enough
            next = recorder_now_ns();
        asked = sleep_until(next + interval < end ? next + interval : end,
                            &signals);
    }
    put_end();
}

// --- arguments --------------------------------------------------------------

static void open_sources(char **paths, uint32_t count, bool awaited)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sensor_source *s = recorder_add(&recorder, paths[i]);
        if (!s)
            fail(1, "not enough memory");
        const char *problem = recorder_open(&recorder, s, awaited);
        if (problem && !awaited)
            fail(1, "%s: %s", paths[i], problem);
    }
}

// What was recorded, and what is not there.
static int report(void)
{
    int status = 0;

    for (uint32_t i = 0; i < recorder.count; i++) {
        const struct sensor_source *s = recorder.sources[i];
        if (!s->open) {
            complain("%s: it was not created", s->path);
            status = 1;
        } else if (s->broken) {
            complain("%s: its owner has spoilt it; what was recorded before "
                     "is in the file",
                     s->path);
            status = 1;
        } else if (s->lost || s->spoilt) {
            complain("%s: lost %" PRIu64 ", spoilt %" PRIu64 " events", s->path,
                     s->lost, s->spoilt);
        }
    }
    return status;
}

int record_command(int argc, char *argv[])
{
    int own = 1;
    struct child child;
    char **command = NULL;

    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    if (own < argc - 1)
        command = &argv[own + 1];
    if (own < argc)
        argv[own] = NULL;
    int first = options_parse(&tool, own, argv);
    if (!settings.file || first == own) {
        complain(settings.file ? "record: which sensors? (`sensors` lists them)"
                               : "record: -o FILE is missing");
        options_wrong(&tool);
    }
    uint64_t end = UINT64_MAX;
    recorder.begun_ns = recorder_now_ns();
    recorder.write = write_piece;
    if (settings.duration_ns)
        end = recorder.begun_ns + settings.duration_ns;
    if (command)
        child_start(&child, command);
    out = fopen(settings.file, "we");
    must_write(out != NULL);
    put_head(settings.interval_ns);
    open_sources(argv + first, (uint32_t)(own - first), command != NULL);
    if (command)
        child_go(&child);
    record(settings.interval_ns, end, command ? &child : NULL);
    int status = report();
    int ended = command ? child_end(&child) : 0;
    return ended ? ended : status;
}
