// Tables of a trace: how often each event happened, what threads and CPUs did,
// and how long system calls, interrupts and page faults took.
#include "graph.h"
#include "lives.h"
#include "points.h"
#include "report.h"
#include "sensed.h"
#include "spans.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS 256u

struct durations {
    uint64_t count, cycles, most;
};

// Of one system call.
struct call {
    uint32_t number;
    struct durations took;
    uint64_t failed;
};

// Of one traced function.
struct counted_function {
    uint32_t address;
    uint64_t calls;
};

// Of one thread: what performance counters have counted, in how many runs.
struct counted_thread {
    uint32_t thread;
    uint64_t runs, counts[TRACE_COUNTERS];
};

struct summary {
    struct trace_file *file;
    uint64_t first, last;
    uint64_t events[1u << TRACE_TYPE_BITS];
    struct lives lives;
    struct spans spans;
    struct call *calls;
    uint32_t call_count, call_room;
    // A hash table, open, at most half full.
    struct counted_function *functions;
    uint32_t function_count, function_room; // a power of two
    struct durations vectors[VECTORS], faults;
    struct counted_thread *counted;
    uint32_t counted_count, counted_room;
    bool no_memory;
};

static void add(struct durations *d, uint64_t cycles)
{
    d->count++;
    d->cycles += cycles;
    if (cycles > d->most)
        d->most = cycles;
}

static struct call *call_of(struct summary *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->call_count; i++) {
        if (s->calls[i].number == number)
            return &s->calls[i];
    }
    if (s->call_count == s->call_room) {
        uint32_t room = s->call_room ? s->call_room * 2 : 64;
        struct call *more = realloc(s->calls, room * sizeof(*more));
        if (!more) {
            s->no_memory = true;
            return NULL;
        }
        s->calls = more;
        s->call_room = room;
    }
    struct call *c = &s->calls[s->call_count++];
    *c = (struct call){ .number = number };
    return c;
}

// --- events -----------------------------------------------------------------

static void on_call(struct summary *s, const struct span *span)
{
    struct call *c = call_of(s, span->what);

    if (!c)
        return;
    add(&c->took, span->end - span->begin);
    c->failed += span->result > UINT32_MAX - 4095;
}

static void on_span(void *arg, const struct span *span)
{
    struct summary *s = arg;
    uint64_t cycles = span->end - span->begin;

    if (!span->whole)
        return;
    if (span->kind == SPAN_CALL)
        on_call(s, span);
    else if (span->kind == SPAN_FAULT)
        add(&s->faults, cycles);
    else if (span->what < VECTORS)
        add(&s->vectors[span->what], cycles);
}

// Its place, or a free one.
static struct counted_function *place_of(const struct summary *s,
                                         uint32_t address)
{
    uint32_t n = address * 2654435761u; // Knuth's multiplicative hashing

    for (;; n++) {
        struct counted_function *c = &s->functions[n & (s->function_room - 1)];
        if (!c->calls || c->address == address)
            return c;
    }
}

static bool grow_functions(struct summary *s)
{
    uint32_t old_room = s->function_room, room = old_room ? old_room * 2 : 1024;
    struct counted_function *old = s->functions;
    struct counted_function *more = calloc(room, sizeof(*more));

    if (!more) {
        s->no_memory = true;
        return false;
    }
    s->functions = more;
    s->function_room = room;
    for (uint32_t i = 0; i < old_room; i++) {
        if (old[i].calls)
            *place_of(s, old[i].address) = old[i];
    }
    free(old);
    return true;
}

static void on_function(struct summary *s, const struct trace_event *e)
{
    uint32_t address;

    if (!trace_fields(e, &address, sizeof(address)) ||
        (s->function_count * 2 >= s->function_room && !grow_functions(s)))
        return;
    struct counted_function *c = place_of(s, address);
    c->address = address;
    s->function_count += !c->calls++;
}

static struct counted_thread *counted_of(struct summary *s, uint32_t thread)
{
    for (uint32_t i = 0; i < s->counted_count; i++) {
        if (s->counted[i].thread == thread)
            return &s->counted[i];
    }
    if (s->counted_count == s->counted_room) {
        uint32_t room = s->counted_room ? s->counted_room * 2 : 64;
        struct counted_thread *more = realloc(s->counted, room * sizeof(*more));
        if (!more) {
            s->no_memory = true;
            return NULL;
        }
        s->counted = more;
        s->counted_room = room;
    }
    struct counted_thread *c = &s->counted[s->counted_count++];
    *c = (struct counted_thread){ .thread = thread };
    return c;
}

static void on_counts(struct summary *s, const struct trace_event *e)
{
    struct trace_sched_pmc counts;
    struct counted_thread *c = NULL;

    if (trace_fields(e, &counts, sizeof(counts)))
        c = counted_of(s, counts.thread);
    if (!c)
        return;
    c->runs++;
    c->counts[0] += counts.first;
    c->counts[1] += counts.second;
}

static void on_event(void *arg, const struct trace_event *e)
{
    struct summary *s = arg;

    if (!s->first)
        s->first = e->time;
    s->last = e->time;
    s->events[e->type]++;
    lives_event(&s->lives, e);
    spans_event(&s->spans, e);
    if (e->type == TRACE_R_CALL)
        on_function(s, e);
    if (e->type == TRACE_sched_pmc)
        on_counts(s, e);
}

// --- tables -----------------------------------------------------------------

// Microseconds, with three digits behind the point.
static void put_us(FILE *out, const struct summary *s, uint64_t cycles)
{
    uint64_t ns = trace_file_ns(s->file, cycles);

    fprintf(out, " %12" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
}

static void put_durations(FILE *out, const struct summary *s,
                          const struct durations *d)
{
    fprintf(out, " %9" PRIu64, d->count);
    put_us(out, s, d->cycles);
    put_us(out, s, d->count ? d->cycles / d->count : 0);
    put_us(out, s, d->most);
}

static void put_events(FILE *out, const struct summary *s)
{
    uint64_t ns = trace_file_ns(s->file, s->last - s->first);

    fprintf(out, "\n%-24s %9s %12s\n", "Event", "Count", "Per second");
    for (uint32_t i = 0; i < 1u << TRACE_TYPE_BITS; i++) {
        if (!s->events[i])
            continue;
        fprintf(out, "%-24s %9" PRIu64, trace_point_name(i), s->events[i]);
        if (ns)
            fprintf(out, " %12" PRIu64,
                    (uint64_t)((double)s->events[i] * 1e9 / (double)ns));
        fputc('\n', out);
    }
}

static void put_threads(FILE *out, const struct summary *s)
{
    fprintf(out, "\n%-24s %9s %16s %16s %16s %16s\n", "Thread", "Switches",
            "Running, us", "Interrupted", "Ready", "Blocked");
    for (uint32_t i = 0; i < s->lives.count; i++) {
        const struct life *t = &s->lives.all[i];
        char name[32];
        trace_file_thread(s->file, t->thread, name);
        fprintf(out, "%-24s %9" PRIu64, name, t->switches);
        put_us(out, s, t->running);
        put_us(out, s, t->interrupted);
        put_us(out, s, t->ready);
        put_us(out, s, t->blocked);
        fputc('\n', out);
    }
    fprintf(out, "\n%-24s %26s %16s %16s\n", "CPU", "Busy, us", "Interrupts",
            "Idle");
    for (uint32_t i = 0; i < s->file->head.cpus; i++) {
        fprintf(out, "%-24" PRIu32 " %9s", i, "");
        put_us(out, s, s->lives.cpu[i].busy);
        put_us(out, s, s->lives.cpu[i].interrupts);
        put_us(out, s, s->lives.cpu[i].idle);
        fputc('\n', out);
    }
}

// The second one for each of the first one: of cycles and instructions the
// instructions per cycle.
static void put_counts(FILE *out, const struct summary *s)
{
    const struct trace_file *f = s->file;
    bool is_ipc = strcmp(f->counters[0], "cycles") == 0 &&
                  strcmp(f->counters[1], "instructions") == 0;

    fprintf(out, "\n%-24s %9s %16s %16s %9s\n", "Counters", "Runs",
            f->counters[0], f->counters[1], is_ipc ? "IPC" : "Ratio");
    for (uint32_t i = 0; i < s->counted_count; i++) {
        const struct counted_thread *c = &s->counted[i];
        char name[32];
        trace_file_thread(f, c->thread, name);
        fprintf(out, "%-24s %9" PRIu64 " %16" PRIu64 " %16" PRIu64, name,
                c->runs, c->counts[0], c->counts[1]);
        if (c->counts[0])
            fprintf(out, " %9.2f\n",
                    (double)c->counts[1] / (double)c->counts[0]);
        else
            fprintf(out, " %9s\n", "-");
    }
}

static void put_title(FILE *out, const char *what)
{
    fprintf(out, "\n%-24s %9s %16s %16s %16s\n", what, "Count", "Sum, us",
            "Mean", "Longest");
}

static int most_first(const void *a, const void *b)
{
    const struct call *x = a, *y = b;

    if (x->took.cycles != y->took.cycles)
        return x->took.cycles < y->took.cycles ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void put_calls(FILE *out, struct summary *s)
{
    put_title(out, "System call");
    if (s->call_count)
        qsort(s->calls, s->call_count, sizeof(*s->calls), most_first);
    for (uint32_t i = 0; i < s->call_count; i++) {
        const struct call *c = &s->calls[i];
        fprintf(out, "%-24s", trace_call_name(c->number));
        put_durations(out, s, &c->took);
        if (c->failed)
            fprintf(out, "  %" PRIu64 " failed", c->failed);
        fputc('\n', out);
    }
    fprintf(out,
            "Calls that ended with their thread: %" PRIu64
            "; that go on: %" PRIu64 "; without an end: %" PRIu64 "\n",
            s->spans.calls_ended, s->spans.calls_open, s->spans.calls_unpaired);
}

static void put_vectors(FILE *out, const struct summary *s)
{
    put_title(out, "Interrupt");
    for (uint32_t i = 0; i < VECTORS; i++) {
        if (!s->vectors[i].count)
            continue;
        fprintf(out, "%-24" PRIu32, i);
        put_durations(out, s, &s->vectors[i]);
        fputc('\n', out);
    }
}

static int most_called_first(const void *a, const void *b)
{
    const struct counted_function *x = a, *y = b;

    if (x->calls != y->calls)
        return x->calls < y->calls ? 1 : -1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void put_functions(FILE *out, struct summary *s)
{
    char name[TRACE_FUNCTION_BYTES];

    qsort(s->functions, s->function_room, sizeof(*s->functions),
          most_called_first);
    fprintf(out, "\n%-36s %9s\n", "Function", "Calls");
    for (uint32_t i = 0; i < s->function_count; i++) {
        trace_file_function(s->file, s->functions[i].address, name);
        fprintf(out, "%-36s %9" PRIu64 "\n", name, s->functions[i].calls);
    }
}

static void put_all(FILE *out, struct summary *s)
{
    const struct trace_file *f = s->file;

    trace_header(out, s->file, s->last - s->first,
                 s->file->head.task ? NULL : &s->lives);
    if (s->no_memory || s->lives.no_memory || s->spans.no_memory)
        fputs("MISSING: parts of the tables, for want of memory\n", out);
    put_events(out, s);
    if (s->file->head.task)
        fputs("\nNo table of threads: who wakes the task's threads is not in "
              "its trace\n",
              out);
    else if (trace_file_has(f, TRACE_sched_switch, TRACE_sched_wake))
        put_threads(out, s);
    if (trace_file_has(f, TRACE_syscall_enter, TRACE_syscall_exit))
        put_calls(out, s);
    if (trace_file_has(f, TRACE_irq_enter, TRACE_irq_exit))
        put_vectors(out, s);
    if (s->function_count)
        put_functions(out, s);
    if (s->counted_count)
        put_counts(out, s);
    if (s->faults.count) {
        put_title(out, "Page fault");
        fprintf(out, "%-24s", "all");
        put_durations(out, s, &s->faults);
        fputc('\n', out);
    }
    sensed_summary(out, s->file, trace_file_ns(s->file, s->last - s->first));
}

const char *trace_summary(FILE *out, struct trace_file *f)
{
    struct summary *s = calloc(1, sizeof(*s));

    if (!s)
        return "not enough memory";
    s->file = f;
    s->spans.span = on_span;
    s->spans.arg = s;
    const char *problem = trace_file_events(f, on_event, s);
    lives_finish(&s->lives, s->last);
    spans_finish(&s->spans, s->last);
    put_all(out, s);
    lives_free(&s->lives);
    free(s->calls);
    free(s->functions);
    free(s->counted);
    spans_free(&s->spans);
    free(s);
    return problem;
}
