// The header of a trace, and its events as lines.
#include "report.h"

#include "lives.h"
#include "points.h"
#include "sensed.h"
#include "user/libstrobe/core_clock.h"

#include <inttypes.h>
#include <string.h>

// --- header -----------------------------------------------------------------

static void put_losses(FILE *out, const struct trace_file *f)
{
    uint64_t told = f->reader.lost;
    uint64_t lost = (uint64_t)f->end.lost[1] << 32 | f->end.lost[0];
    uint64_t throttled =
        (uint64_t)f->end.throttled[1] << 32 | f->end.throttled[0];

    if (f->has_end && lost < told)
        lost = told;
    if (!f->has_end)
        fprintf(out,
                "MISSING: the end: the file was cut off; %" PRIu64
                " events before that were lost\n",
                told);
    else if (lost)
        fprintf(out,
                "MISSING: %" PRIu64 " events%s: %" PRIu64
                " where it says LOST, %" PRIu64 " after a CPU's last event\n",
                lost, throttled ? "" : ", for want of room (-b, fewer events)",
                told, lost - told);
    if (f->has_end && throttled)
        fprintf(out,
                "THROTTLED: %" PRIu64 " of them: events took more than a "
                "quarter of a CPU's time (fewer events); the others for want "
                "of room\n",
                throttled);
    if (f->has_end && f->end.reason == TRACE_FILE_FULL)
        fprintf(out, "MISSING: what followed: the file system was full\n");
    if (f->has_end && f->end.tasks_lost)
        fprintf(out, "MISSING: names of tasks, %" PRIu32 " times\n",
                f->end.tasks_lost);
}

// `cycles`: from the first event to the last. If that is less than they cost,
// as with one event, their share of the time is not known.
static void put_cost(FILE *out, const struct trace_file *f, uint64_t cycles)
{
    uint64_t spent = f->reader.events * f->head.event_cycles;
    uint64_t cpus = f->head.cpus ? f->head.cpus : 1;
    uint64_t all = cycles * cpus;

    fprintf(out,
            "# cost: %" PRIu32 " cycles for an event of 16 bytes, measured at "
            "the start: ",
            f->head.event_cycles);
    if (all > spent)
        fprintf(out, "about %" PRIu64 ".%02" PRIu64 " %% of the CPUs\n",
                spent * 100 / all, spent * 10000 / all % 100);
    else
        fprintf(out, "about %" PRIu64 " in all\n", spent);
}

static void put_flight(FILE *out, const struct trace_file *f)
{
    uint64_t since = trace_file_whole_since(f);
    uint64_t gone =
        (uint64_t)f->flight.overwritten[1] << 32 | f->flight.overwritten[0];
    uint64_t last = 0, ms = 0;

    if (!f->flight.ms)
        return;
    for (uint32_t i = 0; i < f->reader.cpus; i++)
        last = last > f->reader.cpu[i].last ? last : f->reader.cpu[i].last;
    if (last > since)
        ms = trace_file_ns(f, last - since) / 1000000;
    fprintf(out,
            "# flight: of the last %" PRIu32 " s; %" PRIu64
            " older events are not kept",
            f->flight.ms / 1000, gone);
    if (since)
        fprintf(out,
                "; all CPUs' events are here for the last %" PRIu64
                ".%03" PRIu64 " s",
                ms / 1000, ms % 1000);
    fputc('\n', out);
}

void trace_header(FILE *out, const struct trace_file *f, uint64_t cycles,
                  const struct lives *lives)
{
    uint64_t ns = trace_file_ns(f, cycles);

    if (f->command[0])
        fprintf(out, "# command: %s\n", f->command);
    fprintf(out,
            "# %" PRIu64 " events in %" PRIu64 ".%06" PRIu64 " s on %" PRIu32
            " CPUs; ",
            f->reader.events, ns / 1000000000, ns / 1000 % 1000000,
            f->head.cpus);
    if (f->head.task)
        fprintf(out, "only of task %" PRIu32 "\n", f->head.task);
    else
        fputs("of all tasks but `trace` itself\n", out);
    put_flight(out, f);
    put_cost(out, f, cycles);
    fprintf(out, "# clock: TSC, %" PRIu64 ".%03" PRIu64 " MHz%s",
            f->tsc_hz / 1000000, f->tsc_hz / 1000 % 1000,
            core_clock_rate(f->head.tsc_error_ppm));
    // Without both points it is not known that a thread has changed its CPU.
    if (lives && f->head.cpus > 1 &&
        trace_file_has(f, TRACE_sched_switch, TRACE_sched_wake))
        fprintf(out, "; effects before their causes on other CPUs: %" PRIu64,
                lives->contradictions);
    fputc('\n', out);
    put_losses(out, f);
    sensed_header(out, f);
}

// --- report -----------------------------------------------------------------

struct report {
    FILE *out;
    struct trace_file *file;
    const struct trace_choice *choice;
    uint64_t first, last; // times; of the last line
    bool begun;
};

static void put_ns(FILE *out, int width, uint64_t ns)
{
    fprintf(out, "%*" PRIu64 ".%09" PRIu64, width, ns / 1000000000,
            ns % 1000000000);
}

static bool is_chosen(const struct trace_choice *c, const struct trace_event *e)
{
    struct trace_sched_switch s = { .prev = e->thread, .next = e->thread };

    if (c->by_cpu && e->cpu != c->cpu)
        return false;
    if (!c->by_thread || e->type == TRACE_R_LOST)
        return true;
    if (e->type == TRACE_sched_switch)
        trace_fields(e, &s, sizeof(s));
    if (e->type == TRACE_sched_wake) // of the thread that is woken
        memcpy(&s.next, e->fields, sizeof(s.next));
    return s.prev == c->thread || s.next == c->thread;
}

// The times of a line that is chosen.
static bool begin_line(struct report *r, uint64_t time, bool chosen)
{
    if (!r->begun)
        r->first = r->last = time;
    r->begun = true;
    if (!chosen)
        return false;
    put_ns(r->out, 5, trace_file_ns(r->file, time - r->first));
    fprintf(r->out, " %12" PRIu64, trace_file_ns(r->file, time - r->last));
    r->last = time;
    return true;
}

static void print_event(void *arg, const struct trace_event *e)
{
    struct report *r = arg;
    char name[32];

    if (!begin_line(r, e->time, is_chosen(r->choice, e)))
        return;
    trace_file_thread(r->file, e->thread, name);
    fprintf(r->out, " %3" PRIu32 "  %-20s %-14s", e->cpu, name,
            trace_point_name(e->type));
    trace_event_text(r->out, r->file, e);
    fputc('\n', r->out);
}

// Only events of lists have a thread and a CPU.
static void print_sensed(void *arg, const struct recorded *one)
{
    struct report *r = arg;
    const struct trace_choice *c = r->choice;
    char name[SENSED_NAME_BYTES] = "-", where[12] = "-";
    uint32_t thread, cpu;
    bool known = sensed_thread(one, &thread, &cpu);
    bool chosen = (!c->by_cpu || (known && cpu == c->cpu)) &&
                  (!c->by_thread || one->kind == RECORDING_LOSS ||
                   (known && thread == c->thread));

    if (!begin_line(r, one->tsc, chosen))
        return;
    if (known) {
        snprintf(where, sizeof(where), "%" PRIu32, cpu);
        trace_file_thread(r->file, thread, name);
    }
    fprintf(r->out, " %3s  %-20s ", where, name);
    sensed_name(sensed_sensor(r->file, one), name);
    fprintf(r->out, "%-14s", name);
    sensed_text(r->out, r->file, one);
    fputc('\n', r->out);
}

// The header's counts need all events.
struct counting {
    uint64_t first, last;
    struct lives lives;
};

static void count_event(void *arg, const struct trace_event *e)
{
    struct counting *c = arg;

    if (!c->first)
        c->first = e->time;
    c->last = e->time;
    lives_event(&c->lives, e);
}

const char *trace_report(FILE *out, struct trace_file *f,
                         const struct trace_choice *choice)
{
    struct report r = { .out = out, .file = f, .choice = choice };
    static struct counting c;

    memset(&c, 0, sizeof(c));
    trace_file_events(f, count_event, &c);
    trace_header(out, f, c.last - c.first, f->head.task ? NULL : &c.lives);
    lives_free(&c.lives);
    fprintf(out, "%15s %12s %3s  %-20s %s\n", "Time, s", "Since, ns", "CPU",
            "Thread", "Event");
    f->sensed = print_sensed;
    const char *problem = trace_file_events(f, print_event, &r);
    f->sensed = NULL;
    return problem;
}
