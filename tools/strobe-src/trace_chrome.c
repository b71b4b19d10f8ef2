// A trace as JSON in Chrome's trace event format ("Trace Event Format", Google,
// 2016): an object with "traceEvents".
//
//     process 1  a track for each CPU: which thread ran there, and in it the
//                handlers of interrupts; events while it was idle; the counter
//                of lost events
//     process 2  a track for each thread: running, ready, blocked
//     process 3  a track for each thread: its system calls, in them its page
//                faults; its other events as points
//
// Times are microseconds since the first event, with nanoseconds as decimals.
// They are rounded down, so slices that nest or follow each other still do. A
// slice is a nanosecond shorter than it was: speedscope adds begin and duration
// in floating point, and would else see it end after the next one's begin.
//
// What only one task does (`trace record -t`, `-1`) says nothing of who else
// ran, and not who woke its threads: then process 1 has no threads, process 2
// has only what runs.
#include "trace_export.h"

#include "strobe.h"
#include "user/libtrace/graph.h"
#include "user/libtrace/lives.h"
#include "user/libtrace/points.h"
#include "user/libtrace/report.h"
#include "user/libtrace/spans.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS = 1, STATES, CALLS }; // processes

// Threads' ids are below: so an id is of one track in each process.
#define CPU_TRACK 0x40000000u
#define BIT(point) (1u << TRACE_##point)

struct chrome {
    FILE *out;
    struct trace_file *file;
    struct lives lives;
    struct spans spans;
    bool begun;
    uint64_t first, last, lost;
    // A text of one event.
    FILE *text;
    char *text_bytes;
    size_t text_size;
    // Threads that have a track in CALLS.
    uint32_t *named, named_count, named_room;
};

// --- one event --------------------------------------------------------------

static void put_text(FILE *out, const char *text)
{
    json_string(out, text, strlen(text));
}

static uint64_t ns_at(const struct chrome *c, uint64_t time)
{
    return time > c->first ? trace_file_ns(c->file, time - c->first) : 0;
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

// The track of a thread in CALLS, which is named at the end.
static void need_track(struct chrome *c, uint32_t thread)
{
    for (uint32_t i = c->named_count; i--;) {
        if (c->named[i] == thread)
            return;
    }
    if (c->named_count == c->named_room) {
        uint32_t room = c->named_room ? c->named_room * 2 : 64;
        void *more = realloc(c->named, room * sizeof(*c->named));
        if (!more)
            return; // it has no name
        c->named = more;
        c->named_room = room;
    }
    c->named[c->named_count++] = thread;
}

static void put_names(struct chrome *c)
{
    static const char *const processes[] = { "CPUs", "Threads: states",
                                             "Threads: calls" };
    char name[32];

    for (uint32_t i = CPUS; i <= CALLS; i++)
        put_name_of(c, i, 0, "process_name", processes[i - CPUS]);
    for (uint32_t i = 0; i < c->file->head.cpus; i++) {
        snprintf(name, sizeof(name), "CPU %" PRIu32, i);
        put_name_of(c, CPUS, CPU_TRACK + i, "thread_name", name);
    }
    for (uint32_t i = 0; i < c->named_count; i++) {
        trace_file_thread(c->file, c->named[i], name);
        put_name_of(c, STATES, c->named[i], "thread_name", name);
        put_name_of(c, CALLS, c->named[i], "thread_name", name);
    }
}

// --- slices -----------------------------------------------------------------

static bool has_all(const struct chrome *c, uint32_t points)
{
    return (c->file->head.points & points) == points;
}

static void on_piece(void *arg, const struct life *t, uint64_t until)
{
    static const char *const names[] = { [LIFE_RUNNING] = "running",
                                         [LIFE_READY] = "ready",
                                         [LIFE_BLOCKED] = "blocked" };
    struct chrome *c = arg;
    bool all =
        !c->file->head.task && has_all(c, BIT(sched_switch) | BIT(sched_wake));

    if (!has_all(c, BIT(sched_switch)) || (!all && t->state != LIFE_RUNNING))
        return;
    need_track(c, t->thread);
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

    if (!thread || c->file->head.task || !has_all(c, BIT(sched_switch)))
        return;
    trace_file_thread(c->file, thread, name);
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
    need_track(c, s->thread);
    if (s->whole)
        fprintf(c->out, ",\"result\":%" PRId32, (int32_t)s->result);
    else
        fputs(",\"end\":\"the thread's or the trace's\"", c->out);
    fputs("}}", c->out);
}

// --- other events -----------------------------------------------------------

static void put_lost(struct chrome *c, uint64_t time)
{
    begin(c, "C", CPUS, 0, "lost events");
    put_us(c->out, "ts", ns_at(c, time));
    fprintf(c->out, ",\"args\":{\"lost\":%" PRIu64 "}}", c->lost);
}

static void put_point(struct chrome *c, const struct trace_event *e)
{
    if (e->thread)
        need_track(c, e->thread);
    begin(c, "i", e->thread ? CALLS : CPUS,
          e->thread ? e->thread : CPU_TRACK + e->cpu,
          trace_point_name(e->type));
    put_us(c->out, "ts", ns_at(c, e->time));
    fputs(",\"s\":\"t\",\"args\":{\"event\":", c->out);
    rewind(c->text);
    trace_event_text(c->text, c->file, e);
    fflush(c->text);
    json_string(c->out, c->text_bytes, (size_t)ftello(c->text));
    fprintf(c->out, ",\"cpu\":%" PRIu32 "}}", e->cpu);
}

static void on_event(void *arg, const struct trace_event *e)
{
    struct chrome *c = arg;
    uint32_t count;

    if (!c->begun)
        c->first = e->time;
    c->begun = true;
    c->last = e->time;
    lives_event(&c->lives, e);
    spans_event(&c->spans, e);
    switch (e->type) {
    case TRACE_sched_switch:
    case TRACE_syscall_enter:
    case TRACE_syscall_exit:
    case TRACE_irq_enter:
    case TRACE_irq_exit:
    case TRACE_irq_return:
    case TRACE_page_fault:
    case TRACE_page_fault_end:
        break; // slices
    case TRACE_R_LOST:
        memcpy(&count, e->fields, sizeof(count));
        c->lost += count;
        put_lost(c, e->time);
        break;
    default:
        put_point(c, e);
    }
}

// --- the file ---------------------------------------------------------------

static void put_head(struct chrome *c)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"command\":", c->out);
    put_text(c->out, c->file->command);
    fprintf(c->out, ",\"tsc_hz\":\"%" PRIu64 "\"},\n\"traceEvents\":[\n",
            c->file->tsc_hz);
    // So that each further one follows a comma.
    fputs("{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_sort_index\","
          "\"args\":{\"sort_index\":0}}",
          c->out);
}

static void put_end(struct chrome *c)
{
    uint64_t lost = (uint64_t)c->file->end.lost[1] << 32 | c->file->end.lost[0];

    // Those behind a CPU's last event.
    if (c->file->has_end && lost > c->lost) {
        c->lost = lost;
        put_lost(c, c->last);
    }
    put_names(c);
    fputs("\n]}\n", c->out);
}

static const char *export(struct chrome *c)
{
    put_head(c);
    const char *problem = trace_file_events(c->file, on_event, c);
    lives_finish(&c->lives, c->last);
    spans_finish(&c->spans, c->last);
    put_end(c);
    if (!problem && (c->lives.no_memory || c->spans.no_memory))
        problem = "not enough memory: slices are missing";
    return problem;
}

const char *trace_chrome(FILE *out, struct trace_file *f)
{
    struct chrome *c = calloc(1, sizeof(*c));
    const char *problem = "not enough memory";

    if (!c)
        return problem;
    c->out = out;
    c->file = f;
    c->lives.piece = on_piece;
    c->lives.ran = on_ran;
    c->lives.arg = c;
    c->spans.span = on_span;
    c->spans.arg = c;
    c->text = open_memstream(&c->text_bytes, &c->text_size);
    if (c->text) {
        problem = export(c);
        fclose(c->text);
    }
    lives_free(&c->lives);
    spans_free(&c->spans);
    free(c->text_bytes);
    free(c->named);
    free(c);
    return problem;
}
