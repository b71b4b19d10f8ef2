// trace record: begins a trace, copies what it gives into a file, and ends it.
//
// The file is written in whole chunks in the order of what happened, so it is
// of use up to where it was cut off. The kernel ends the trace if this program
// is killed.
//
// A flight gives only the names of tasks until it is over. They are kept in
// memory, those of the last tasks, for its file and for snapshots.
#include "trace.h"

#include "out.h"
#include "sensors.h"
#include "user/libstrobe/child.h"
#include "user/libstrobe/sysinfo.h"
#include "user/libstrobe/trace_reading.h"
#include "user/libstrobe/tracing.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (1024 * 1024)
#define NAMES_BYTES (128 * 1024) // twice: the later half is always there

struct recording {
    const struct settings *settings;
    uint32_t task; // that is traced; 0: all
    struct profile_session session;
    struct trace_info info;
    struct trace_out out;
    struct trace_reading reading;
    struct trace_sensors sensors;
    sig_atomic_t samples; // of those that were asked for
    // A flight's.
    char *names[2], *copy;
    size_t names_bytes[2], copy_bytes;
    unsigned now;                // the later one of `names`
    sig_atomic_t snapshots_made; // of those that were asked for
    unsigned snapshots;          // the last one's number
};

static volatile sig_atomic_t snapshots_asked, samples_asked;

static void on_snapshot(int signal)
{
    (void)signal;
    snapshots_asked++;
}

static void on_alarm(int signal)
{
    (void)signal;
    samples_asked++;
}

static void catch (int signal, void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler,
                                .sa_flags = SA_NOCLDSTOP };

    sigaction(signal, &action, NULL);
}

static void *enough(size_t bytes)
{
    void *p = malloc(bytes);

    if (!p)
        fail(1, "not enough memory");
    return p;
}

// --- a flight ----------------------------------------------------------------

static void begin_flight(struct recording *r)
{
    r->names[0] = enough(NAMES_BYTES);
    r->names[1] = enough(NAMES_BYTES);
    r->copy_bytes =
        r->info.cpus * (r->info.ring_bytes + sizeof(struct trace_block)) +
        NAMES_BYTES;
    r->copy = enough(r->copy_bytes);
}

static void keep_names(struct recording *r, const void *blocks, size_t bytes)
{
    if (bytes > NAMES_BYTES)
        return;
    if (r->names_bytes[r->now] + bytes > NAMES_BYTES) {
        r->now = !r->now;
        r->names_bytes[r->now] = 0;
    }
    memcpy(r->names[r->now] + r->names_bytes[r->now], blocks, bytes);
    r->names_bytes[r->now] += bytes;
}

// What precedes the events in the file of a flight.
static void put_flight(struct recording *r, struct trace_out *out)
{
    for (unsigned i = 0; i < 2; i++) {
        unsigned half = i ? r->now : !r->now;
        if (r->names_bytes[half])
            trace_out_blocks(out, r->names[half], r->names_bytes[half]);
    }
    trace_out_flight(out, r->settings->options.flight_ms, &r->info);
    sensors_put_flight(&r->sensors, r->settings->options.flight_ms, out);
}

static void snapshot(struct recording *r)
{
    char path[4096];
    struct trace_out out;
    struct trace_block tasks; // the first one
    int n = profile_trace_copy(&r->session, r->copy, r->copy_bytes);

    if (n < 0 || profile_trace_info(&r->session, &r->info) < 0) {
        complain("snapshot: %s", strerror(errno));
        return;
    }
    memcpy(&tasks, r->copy, sizeof(tasks));
    size_t names = sizeof(tasks) + tasks.size;
    keep_names(r, r->copy, names);
    snprintf(path, sizeof(path), "%s.%u", r->settings->output, ++r->snapshots);
    if (!trace_out_open(&out, path)) {
        complain("snapshot: %s: %s", path, strerror(errno));
        return;
    }
    trace_out_head(&out, &r->settings->options, r->task, r->settings->command,
                   &r->info, &r->out, r->settings->functions);
    put_flight(r, &out);
    trace_out_blocks(&out, r->copy + names, (size_t)n - names);
    if (trace_out_close(&out, &r->info))
        fprintf(stderr, "trace: a snapshot is in %s\n", path);
}

static void interrupted(void *arg)
{
    struct recording *r = arg;

    if (r->samples != samples_asked) {
        r->samples = samples_asked;
        sensors_sample(&r->sensors);
    }
    while (r->snapshots_made != snapshots_asked) {
        r->snapshots_made++;
        snapshot(r);
    }
}

// --- the trace --------------------------------------------------------------

// Why there are no performance counters, in the kernel's words.
static const char *no_counters(void)
{
    static char why[sizeof(((struct sysinfo_sampler *)0)->why) + 1];
    size_t count = 0;
    struct sysinfo_sampler *all =
        sysinfo_read_sampler("system.profile.sources", &count);

    strcpy(why, "docs/counters.md");
    for (size_t i = 0; all && i < count; i++) {
        if (strcmp(all[i].name, "pmc") == 0 && all[i].why[0])
            memcpy(why, all[i].why, sizeof(all[i].why));
    }
    free(all);
    return why;
}

// Ends the program if sched/pmc is what cannot be.
static void complain_of_counters(const struct trace_options *o, int error)
{
    const char *a = o->counters[0], *b = o->counters[1];

    if (error == ENODEV)
        fail(1, "sched/pmc: this machine has no performance counters; %s",
             no_counters());
    if (error == EOPNOTSUPP)
        fail(1, "--counters %s,%s: this machine cannot count both", a, b);
    if (error == ENOENT)
        fail(1,
             "--counters %s,%s: there is no such event: cycles, instructions, "
             "..., or rNNMM (docs/counters.md)",
             a, b);
    if (error == EBUSY && !o->function_count)
        fail(1, "sched/pmc: the performance counters are in use, by another "
                "trace or by profiles");
}

static _Noreturn void cannot_begin(const struct trace_options *o)
{
    int error = errno;
    struct calls_info info;
    int phone = tracing_phone();

    if (o->counters[0][0])
        complain_of_counters(o, error);
    if (error == EBUSY && phone >= 0 && tracing_info(phone, &info) == 0 &&
        info.owner)
        fail(1,
             "-F: task %u traces the kernel's calls already, and there is one "
             "trace of them at a time",
             info.owner);

    if (error == ESRCH)
        fail(1, "-t %u: no such task, or it has ended (see ps)", o->task);
    if (error == EUSERS)
        fail(1, "there are as many traces as there can be");
    if (error == ENOMEM)
        fail(1, "not enough memory for the trace: -b with a lower number needs "
                "less");
    fail(1, "%s", kbox_problem(error));
}

static void copy_all(struct recording *r)
{
    bool flies = r->settings->options.flight_ms;
    int n;

    // A full file system ends the trace: nobody would see more of it.
    while (!r->out.error && (n = trace_reading_next(&r->reading)) >= 0) {
        if (flies && r->reading.paused) {
            flies = false;
            profile_trace_info(&r->session, &r->info);
            put_flight(r, &r->out);
        }
        if (n && flies)
            keep_names(r, r->reading.buffer, (size_t)n);
        else if (n)
            trace_out_blocks(&r->out, r->reading.buffer, (size_t)n);
    }
}

static void begin(struct recording *r)
{
    struct trace_options o = r->settings->options;

    uint32_t *chosen = NULL;

    o.task = r->task;
    if (r->settings->functions) {
        chosen = choose_functions(&r->settings->choice, 'F', &o.function_count);
        o.functions = (uint32_t)(uintptr_t)chosen;
        o.calls_only = 1;
    }
    if (profile_trace_begin(&r->session, &o) < 0)
        cannot_begin(&o);
    free(chosen);
    if (profile_trace_info(&r->session, &r->info) < 0)
        fail(1, "the trace: %s", strerror(errno));
    trace_out_head(&r->out, &o, r->task, r->settings->command, &r->info, NULL,
                   r->settings->functions);
    if (o.flight_ms)
        begin_flight(r);
    sensors_begin(&r->sensors, r->settings->sensors, r->settings->interval_ns,
                  &r->info, o.flight_ms, &r->out);
    r->reading = (struct trace_reading){
        .session = &r->session,
        .buffer = enough(BUFFER_BYTES),
        .bytes = BUFFER_BYTES,
        .resumes = o.flight_ms,
        .interrupted = interrupted,
        .arg = r,
    };
}

static void print_counts(const struct recording *r)
{
    const struct trace_info *info = &r->info;
    uint64_t no_room = info->lost - info->throttled;

    fprintf(stderr, "trace: %" PRIu64 " records", info->recorded);
    if (no_room)
        fprintf(stderr,
                ", and %" PRIu64 " LOST for want of room (-b, fewer -e or -F)",
                no_room);
    if (info->throttled)
        fprintf(stderr,
                ", and %" PRIu64 " THROTTLED: events took more than a quarter "
                "of a CPU's time (fewer -e)",
                info->throttled);
    fprintf(stderr, ", %sin %s", r->out.error ? "not all of them " : "",
            r->settings->output);
    if (r->settings->options.flight_ms)
        fprintf(stderr, "; %" PRIu64 " older ones are not kept",
                info->overwritten);
    fputc('\n', stderr);
}

int record(const struct settings *s)
{
    static struct recording r;
    struct child child = { 0 };
    int status = 0;

    r.settings = s;
    r.task = s->options.task;
    if (!trace_out_open(&r.out, s->output))
        fail(1, "-o %s: %s", s->output, strerror(errno));
    trace_reading_end_at(SIGINT);
    trace_reading_end_at(SIGTERM);
    catch (SIGALRM, on_alarm);
    if (s->options.flight_ms)
        catch (SIGUSR1, on_snapshot);
    if (s->command[0]) {
        trace_reading_end_at(SIGCHLD);
        child_start(&child, s->command);
        if (s->own_only)
            r.task = (uint32_t)child.pid;
        begin(&r);
        child_go(&child);
    } else {
        begin(&r);
    }
    copy_all(&r);
    sensors_end(&r.sensors);
    profile_trace_info(&r.session, &r.info);
    profile_end(&r.session);
    bool good = trace_out_close(&r.out, &r.info);
    signal(SIGTERM, SIG_DFL); // ends the wait for the command
    if (s->command[0])
        status = child_end(&child);
    free(child.path);
    print_counts(&r);
    sensors_report(&r.sensors);
    return status ? status : good ? 0 : 1;
}

// --- trace snapshot ---------------------------------------------------------

int ask_for_snapshots(void)
{
    size_t count = 0;
    unsigned asked = 0;
    struct sysinfo_trace *all =
        sysinfo_read_trace("system.profile.traces", &count);

    if (!all)
        fail(1, "system.profile.traces: %s", strerror(errno));
    for (size_t i = 0; i < count; i++) {
        if (!all[i].flight || strcmp(all[i].state, "taking") != 0)
            continue;
        if (kill((pid_t)all[i].owner, SIGUSR1) != 0)
            fail(1, "the flight of task %" PRIu32 ": %s", all[i].owner,
                 strerror(errno));
        asked++;
    }
    free(all);
    if (!asked)
        fail(1, "there is no flight: trace record --flight SECONDS begins one");
    return 0;
}
