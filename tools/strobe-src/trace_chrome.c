// A trace as JSON in Chrome's trace event format ("Trace Event Format", Google,
// 2016): an object with "traceEvents".
//
//     process 1  a track for each CPU: which thread ran there, and in it the
//                handlers of interrupts; events while it was idle; the counter
//                of lost events
//     process 2  a track for each thread: running, ready, blocked
//     process 3  a track for each thread: its system calls, in them its page
//                faults; its other events as points, and those that it put into
//                lists of sensors
//     process 4  counters: the values of sensors, of histograms the sum; a
//                track for each ring, with its records as points, and for each
//                list and ring with what is missing
//
// Times are microseconds since the first event, with nanoseconds as decimals.
// They are rounded down, so slices that nest or follow each other still do. A
// slice is a nanosecond shorter than it was: speedscope adds begin and duration
// in floating point, and would else see it end after the next one's begin.
//
// Of a trace of one task process 1 has no threads, process 2 has only what runs
// (trace_tracks.h).
#include "trace_export.h"
#include "trace_tracks.h"

#include "strobe.h"
#include "user/libtrace/graph.h"
#include "user/libtrace/points.h"
#include "user/libtrace/sensed.h"

#include <inttypes.h>
#include <string.h>

enum { CPUS = 1, STATES, CALLS, SENSORS }; // processes

// Threads' ids are below: so an id is of one track in each process.
#define CPU_TRACK 0x40000000u
#define SENSOR_TRACK 0x50000000u

struct chrome {
    FILE *out;
    struct tracks tracks;
};

// --- one event --------------------------------------------------------------

static void put_text(FILE *out, const char *text)
{
    json_string(out, text, strlen(text));
}

static uint64_t ns_at(const struct chrome *c, uint64_t time)
{
    return tracks_ns(&c->tracks, time);
}

static void put_us(FILE *out, const char *member, uint64_t ns)
{
    fprintf(out, ",\"%s\":%" PRIu64 ".%03" PRIu64, member, ns / 1000,
            ns % 1000);
}

// An event up to its name.
static void begin(struct chrome *c, const char *phase, uint32_t process,
                  uint32_t track, const char *name)
{
    fprintf(c->out,
            ",\n{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
            ",\"name\":",
            phase, process, track);
    put_text(c->out, name);
}

static void begin_slice(struct chrome *c, uint32_t process, uint32_t track,
                        const char *name, uint64_t from, uint64_t until)
{
    uint64_t ns = ns_at(c, until) - ns_at(c, from);

    begin(c, "X", process, track, name);
    put_us(c->out, "ts", ns_at(c, from));
    put_us(c->out, "dur", ns ? ns - 1 : 0);
}

static void put_name_of(struct chrome *c, uint32_t process, uint32_t track,
                        const char *what, const char *name)
{
    begin(c, "M", process, track, what);
    fputs(",\"args\":{\"name\":", c->out);
    put_text(c->out, name);
    fputs("}}", c->out);
}

// --- tracks -----------------------------------------------------------------

static void put_names(struct chrome *c)
{
    static const char *const processes[] = { "CPUs", "Threads: states",
                                             "Threads: calls", "Sensors" };
    const struct tracks *t = &c->tracks;
    const struct recording *r = &t->file->sensors;
    char name[SENSED_NAME_BYTES];

    for (uint32_t i = CPUS; i <= (r->sensor_count ? SENSORS : CALLS); i++)
        put_name_of(c, i, 0, "process_name", processes[i - CPUS]);
    for (uint32_t i = 0; i < t->file->head.cpus; i++) {
        snprintf(name, sizeof(name), "CPU %" PRIu32, i);
        put_name_of(c, CPUS, CPU_TRACK + i, "thread_name", name);
    }
    for (uint32_t i = 0; i < t->thread_count; i++) {
        trace_file_thread(t->file, t->threads[i].thread, name);
        put_name_of(c, STATES, t->threads[i].thread, "thread_name", name);
        put_name_of(c, CALLS, t->threads[i].thread, "thread_name", name);
    }
    for (uint32_t i = 0; i < r->sensor_count; i++) {
        sensed_name(&r->sensors[i], name);
        put_name_of(c, SENSORS, SENSOR_TRACK + i, "thread_name", name);
    }
}

// --- slices -----------------------------------------------------------------

static void on_piece(void *arg, const struct life *t, uint64_t until)
{
    static const char *const names[] = { [LIFE_RUNNING] = "running",
                                         [LIFE_READY] = "ready",
                                         [LIFE_BLOCKED] = "blocked" };
    struct chrome *c = arg;

    begin_slice(c, STATES, t->thread, names[t->state], t->since, until);
    if (t->state == LIFE_RUNNING)
        fprintf(c->out, ",\"args\":{\"cpu\":%" PRIu32 "}", t->cpu);
    fputc('}', c->out);
}

static void on_ran(void *arg, uint32_t cpu, uint32_t thread, uint64_t from,
                   uint64_t until)
{
    struct chrome *c = arg;
    char name[32];

    trace_file_thread(c->tracks.file, thread, name);
    begin_slice(c, CPUS, CPU_TRACK + cpu, name, from, until);
    fputc('}', c->out);
}

static void on_span(void *arg, const struct span *s)
{
    struct chrome *c = arg;
    char name[32];

    switch (s->kind) {
    case SPAN_INTERRUPT:
        snprintf(name, sizeof(name), "interrupt %" PRIu32, s->what);
        begin_slice(c, CPUS, CPU_TRACK + s->cpu, name, s->begin, s->end);
        fputc('}', c->out);
        return;
    case SPAN_CALL:
        begin_slice(c, CALLS, s->thread, trace_call_name(s->what), s->begin,
                    s->end);
        fprintf(c->out, ",\"args\":{\"number\":%" PRIu32, s->what);
        break;
    case SPAN_FAULT:
        begin_slice(c, CALLS, s->thread, "page fault", s->begin, s->end);
        fprintf(c->out, ",\"args\":{\"address\":\"%#" PRIx32 "\"", s->what);
        break;
    }
    if (s->whole)
        fprintf(c->out, ",\"result\":%" PRId32, (int32_t)s->result);
    else
        fputs(",\"end\":\"the thread's or the trace's\"", c->out);
    fputs("}}", c->out);
}

// --- other events -----------------------------------------------------------

static void on_lost(void *arg, const struct trace_event *e, uint64_t time)
{
    struct chrome *c = arg;

    (void)e;
    begin(c, "C", CPUS, 0, "lost events");
    put_us(c->out, "ts", ns_at(c, time));
    fprintf(c->out, ",\"args\":{\"lost\":%" PRIu64 "}}", c->tracks.lost);
}

// One counter for each CPU: what the thread that leaves has counted.
static void put_counts(struct chrome *c, const struct trace_event *e)
{
    const struct trace_file *f = c->tracks.file;
    struct trace_sched_pmc counts;
    char name[32];

    if (!trace_fields(e, &counts, sizeof(counts)))
        return;
    snprintf(name, sizeof(name), "counters of CPU %" PRIu32, e->cpu);
    begin(c, "C", CPUS, 0, name);
    put_us(c->out, "ts", ns_at(c, e->time));
    fputs(",\"args\":{", c->out);
    json_string(c->out, f->counters[0], strlen(f->counters[0]));
    fprintf(c->out, ":%" PRIu64 ",", counts.first);
    json_string(c->out, f->counters[1], strlen(f->counters[1]));
    fprintf(c->out, ":%" PRIu64 "}}", counts.second);
}

static void on_point(void *arg, const struct trace_event *e)
{
    struct chrome *c = arg;
    size_t size;

    if (e->type == TRACE_sched_pmc)
        put_counts(c, e);

    begin(c, "i", e->thread ? CALLS : CPUS,
          e->thread ? e->thread : CPU_TRACK + e->cpu,
          trace_point_name(e->type));
    put_us(c->out, "ts", ns_at(c, e->time));
    fputs(",\"s\":\"t\",\"args\":{\"event\":", c->out);
    const char *text = tracks_text(&c->tracks, e, &size);
    json_string(c->out, text, size);
    fprintf(c->out, ",\"cpu\":%" PRIu32 "}}", e->cpu);
}

// --- sensors ----------------------------------------------------------------

static void on_sensed(void *arg, const struct recorded *one)
{
    struct chrome *c = arg;
    uint32_t thread = 0, cpu;
    char name[SENSED_NAME_BYTES];
    uint64_t value;
    size_t size;
    bool has_cpu = sensed_thread(one, &thread, &cpu);

    sensed_name(sensed_sensor(c->tracks.file, one), name);
    if (sensed_value(one, &value)) {
        begin(c, "C", SENSORS, 0, name);
        put_us(c->out, "ts", ns_at(c, one->tsc));
        fprintf(c->out, ",\"args\":{\"%s\":%" PRIu64 "}}",
                one->kind == RECORDING_SCALAR ? "value" : "sum", value);
        return;
    }
    begin(c, "i", thread ? CALLS : SENSORS,
          thread ? thread : SENSOR_TRACK + one->source, name);
    put_us(c->out, "ts", ns_at(c, one->tsc));
    fputs(",\"s\":\"t\",\"args\":{\"event\":", c->out);
    const char *text = tracks_sensed_text(&c->tracks, one, &size);
    json_string(c->out, text, size);
    if (has_cpu)
        fprintf(c->out, ",\"cpu\":%" PRIu32, cpu);
    fputs("}}", c->out);
}

// --- the file ---------------------------------------------------------------

static void put_head(struct chrome *c)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"command\":", c->out);
    put_text(c->out, c->tracks.file->command);
    fprintf(c->out, ",\"tsc_hz\":\"%" PRIu64 "\"},\n\"traceEvents\":[\n",
            c->tracks.file->tsc_hz);
    // So that each further one follows a comma.
    fputs("{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_sort_index\","
          "\"args\":{\"sort_index\":0}}",
          c->out);
}

const char *trace_chrome(FILE *out, struct trace_file *f)
{
    static const struct tracks_writer writer = { .piece = on_piece,
                                                 .ran = on_ran,
                                                 .span = on_span,
                                                 .point = on_point,
                                                 .lost = on_lost,
                                                 .sensed = on_sensed };
    struct chrome c = { .out = out,
                        .tracks = { .file = f, .to = &writer, .arg = &c } };

    put_head(&c);
    const char *problem = tracks_tell(&c.tracks);
    put_names(&c);
    fputs("\n]}\n", out);
    tracks_free(&c.tracks);
    return problem;
}
