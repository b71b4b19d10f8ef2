// One stack of open calls for each thread. A call is printed as one line, if it
// called nothing that is shown, else as a line when it begins and one when it
// ends. So the line of an entry waits until the thread's next event; if short
// calls are left out, until one within it is long enough, or it ends.
//
// Interrupts, page faults and system calls are calls on the same stack.
#include "graph.h"

#include "user/libstrobe/strobe.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 512u
#define LINE_MAX (2 * DEPTH_MAX + 1024) // what does not fit is left out
#define NO_MARK UINT32_MAX              // of calls that are no function's

enum kind { FUNCTION, INTERRUPT, FAULT, CALL };

struct open_call {
    enum kind kind;
    uint32_t what;          // entry address, vector, faulting address, number
    uint32_t mark;          // struct trace_entry
    uint64_t time, off_cpu; // when it began
    bool shown;
};

// A thread; for those with number 0 (idle ones), of each CPU.
struct graph_thread {
    uint32_t thread, cpu; // cpu: of its last event
    uint64_t left;        // when it left its CPU; 0: it runs, or it is unknown
    uint64_t off_cpu;     // cycles
    uint32_t depth;
    bool waits; // the innermost call is not printed yet
    struct open_call open[DEPTH_MAX];
    struct graph_thread *next;
};

// --- lines ------------------------------------------------------------------

// There are thousands of lines: they are put together without a printf for each
// field, and written many at once.

void graph_flush(struct graph *g)
{
    fwrite(g->text, 1, g->length, g->out);
    g->length = 0;
    fflush(g->out);
}

static void put(struct graph *g, const char *text)
{
    char *at = g->text + g->length, *end = g->text + sizeof(g->text);

    while (at < end && *text)
        *at++ = *text++;
    g->length = (uint32_t)(at - g->text);
}

static void put_format(struct graph *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_format(struct graph *g, const char *format, ...)
{
    char text[128];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put(g, text);
}

// Returns where the NUL is.
static char *put_duration(char *out, uint64_t ns)
{
    const char *unit = ns < 10000 ? "ns" : ns < 10000000 ? "us" : "ms";

    if (ns >= 10000) {
        uint64_t tenths = ns / (ns < 10000000 ? 100 : 100000);
        out = put_decimal(out, tenths / 10);
        *out++ = '.';
        ns = tenths % 10;
    }
    return stpcpy(put_decimal(out, ns), unit);
}

static uint64_t to_ns(const struct graph *g, uint64_t cycles)
{
    return g->tsc_hz
               ? (uint64_t)((long double)cycles * 1e9L / (long double)g->tsc_hz)
               : 0;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

// Before a line: there is room for all of it.
static void make_room(struct graph *g)
{
    if (sizeof(g->text) - g->length < LINE_MAX)
        graph_flush(g);
}

// The columns of a line, before its text. `cycles` NULL: it has no duration.
static void begin_line(struct graph *g, uint32_t cpu, uint32_t thread,
                       const uint64_t *cycles, uint32_t depth)
{
    const char *name = g->thread(g->arg, thread);
    char number[NUMBER_SIZE], duration[NUMBER_SIZE] = "";
    uint32_t digits = (uint32_t)(put_decimal(number, cpu) - number);
    uint32_t length = (uint32_t)strlen(name), took = 0;

    if (cycles)
        took = (uint32_t)(put_duration(duration, to_ns(g, *cycles)) - duration);
    uint32_t cpu_until = larger(digits, 3);
    uint32_t thread_until = cpu_until + 2 + larger(length, 16);
    uint32_t took_until = thread_until + 1 + larger(took, 9);
    uint32_t text_at = took_until + 2 + 2 * depth;
    make_room(g);
    char *line = memset(g->text + g->length, ' ', text_at);
    memcpy(line + cpu_until - digits, number, digits);
    memcpy(line + cpu_until + 2, name, length);
    memcpy(line + took_until - took, duration, took);
    g->length += text_at;
}

// The begin of a line that is no thread's.
static void begin_other(struct graph *g, uint32_t cpu)
{
    make_room(g);
    put_format(g, "%3" PRIu32 "  ", cpu);
}

static void put_name(struct graph *g, const struct open_call *c)
{
    switch (c->kind) {
    case FUNCTION:
        put(g, g->function(g->arg, c->what));
        break;
    case INTERRUPT:
        put_format(g, "[interrupt %" PRIu32 "]", c->what);
        break;
    case FAULT:
        put_format(g, "[page fault at %#" PRIx32 "]", c->what);
        break;
    case CALL:
        put(g, "[system call ");
        put(g, trace_call_name(c->what));
        put(g, "]");
        break;
    }
}

// The entries that are due, outermost first, down to the innermost call.
static void show_open(struct graph *g, struct graph_thread *t, uint32_t cpu)
{
    for (uint32_t i = 0; i < t->depth; i++) {
        struct open_call *c = &t->open[i];
        if (c->shown)
            continue;
        c->shown = true;
        begin_line(g, cpu, t->thread, NULL, i);
        put_name(g, c);
        put(g, " {\n");
    }
    t->waits = false;
}

// Before another event of the thread: the innermost call is no leaf.
static void settle(struct graph *g, struct graph_thread *t, uint32_t cpu)
{
    if (t->waits && !g->min_cycles)
        show_open(g, t, cpu);
}

// Whether events at this place are shown: those in calls that may yet be left
// out are not.
static bool is_visible(const struct graph *g, const struct graph_thread *t)
{
    return !g->min_cycles || !t->depth || t->open[t->depth - 1].shown;
}

// --- threads ----------------------------------------------------------------

static struct graph_thread *find_thread(struct graph *g, uint32_t thread,
                                        uint32_t cpu)
{
    struct graph_thread **at = &g->threads, *t;

    for (; (t = *at); at = &t->next) {
        if (t->thread != thread || (!thread && t->cpu != cpu))
            continue;
        *at = t->next; // to the front
        t->next = g->threads;
        g->threads = t;
        return t;
    }
    t = calloc(1, sizeof(*t));
    if (!t) {
        g->no_memory = true;
        return NULL;
    }
    t->thread = thread;
    t->cpu = cpu;
    t->next = g->threads;
    g->threads = t;
    return t;
}

static void forget_thread(struct graph *g, struct graph_thread *t)
{
    struct graph_thread **at = &g->threads;

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    free(t);
}

// --- calls ------------------------------------------------------------------

static void open_call(struct graph *g, struct graph_thread *t,
                      const struct trace_event *e, enum kind kind,
                      uint32_t what, uint32_t mark)
{
    settle(g, t, e->cpu);
    if (t->depth == DEPTH_MAX)
        return;
    t->open[t->depth++] = (struct open_call){
        .kind = kind,
        .what = what,
        .mark = mark,
        .time = e->time,
        .off_cpu = t->off_cpu,
    };
    t->waits = true;
}

// Drops calls that were left without a return, down to `depth`.
static void drop_to(struct graph *g, struct graph_thread *t, uint32_t cpu,
                    uint32_t depth)
{
    while (t->depth > depth) {
        settle(g, t, cpu);
        struct open_call *c = &t->open[--t->depth];
        if (!c->shown)
            continue;
        begin_line(g, cpu, t->thread, NULL, t->depth);
        put(g, "} (no return: ");
        put_name(g, c);
        put(g, ")\n");
    }
    t->waits = false;
}

static void close_line(struct graph *g, struct graph_thread *t, uint32_t cpu,
                       uint64_t cycles, const char *result)
{
    struct open_call *c = &t->open[t->depth - 1];
    bool opened = c->shown;
    if (!opened && g->min_cycles) {
        t->depth--; // its callers
        show_open(g, t, cpu);
        t->depth++;
    }
    begin_line(g, cpu, t->thread, &cycles, t->depth - 1);
    if (opened)
        put(g, "} ");
    put_name(g, c);
    if (!opened && c->kind == FUNCTION)
        put(g, "();");
    put(g, result);
    put(g, "\n");
}

// Closes the innermost open call of this kind, with `what` unless it is 0.
// `cycles` NULL: the time since it began. False: there is none.
static bool close_call(struct graph *g, struct graph_thread *t,
                       const struct trace_event *e, enum kind kind,
                       uint32_t what, const uint64_t *cycles,
                       const char *result)
{
    uint32_t n = t->depth;

    while (n && (t->open[n - 1].kind != kind ||
                 (what && t->open[n - 1].what != what)))
        n--;
    if (!n)
        return false;
    drop_to(g, t, e->cpu, n);
    const struct open_call *c = &t->open[n - 1];
    uint64_t took =
        cycles ? *cycles : e->time - c->time - (t->off_cpu - c->off_cpu);
    if (took >= g->min_cycles || c->shown)
        close_line(g, t, e->cpu, took, result);
    t->depth = n - 1;
    t->waits = false;
    return true;
}

// A return whose call was lost.
static void close_unknown(struct graph *g, const struct graph_thread *t,
                          const struct trace_event *e, uint32_t function,
                          uint64_t cycles)
{
    if (cycles < g->min_cycles || !is_visible(g, t))
        return;
    begin_line(g, e->cpu, t->thread, &cycles, t->depth);
    put(g, "} ");
    put(g, g->function(g->arg, function));
    put(g, " (its call is missing)\n");
}

static void on_entry(struct graph *g, struct graph_thread *t,
                     const struct trace_event *e)
{
    uint32_t fields[2], depth = t->depth; // function, mark

    if (e->size < sizeof(fields))
        return;
    memcpy(fields, e->fields, sizeof(fields));
    while (depth && t->open[depth - 1].mark < fields[1])
        depth--;
    if (depth < t->depth)
        drop_to(g, t, e->cpu, depth);
    g->calls++;
    open_call(g, t, e, FUNCTION, fields[0], fields[1]);
}

static void on_exit_of(struct graph *g, struct graph_thread *t,
                       const struct trace_event *e)
{
    uint32_t fields[3]; // function, cycles

    if (e->size < sizeof(fields))
        return;
    memcpy(fields, e->fields, sizeof(fields));
    uint64_t cycles = (uint64_t)fields[2] << 32 | fields[1];
    if (!close_call(g, t, e, FUNCTION, fields[0], &cycles, ""))
        close_unknown(g, t, e, fields[0], cycles);
}

// --- other events -----------------------------------------------------------

// A line between the calls.
static void note(struct graph *g, struct graph_thread *t,
                 const struct trace_event *e)
{
    settle(g, t, e->cpu);
    begin_line(g, e->cpu, t->thread, NULL, t->depth);
}

static const char *why_left(uint8_t state)
{
    static const char *const words[] = { "runs",  "ready",   "sleeps",
                                         "waits", "stopped", "ends" };

    return state < sizeof(words) / sizeof(words[0]) ? words[state] : "?";
}

static void put_switch(struct graph *g, const struct trace_event *e,
                       const struct trace_sched_switch *s,
                       const struct graph_thread *next)
{
    char away[NUMBER_SIZE];

    begin_other(g, e->cpu);
    put(g, "---- ");
    put(g, g->thread(g->arg, s->prev));
    put(g, s->prev ? " " : "");
    put(g, s->prev ? why_left(s->state) : "");
    put(g, " -> ");
    put(g, g->thread(g->arg, s->next));
    if (s->next && next->left && e->time > next->left) {
        put_duration(away, to_ns(g, e->time - next->left));
        put(g, ", which was away for ");
        put(g, away);
    }
    put(g, " ----\n");
}

static void on_switch(struct graph *g, const struct trace_event *e)
{
    struct trace_sched_switch s;

    if (!trace_fields(e, &s, sizeof(s)))
        return;
    struct graph_thread *prev = find_thread(g, s.prev, e->cpu);
    struct graph_thread *next = find_thread(g, s.next, e->cpu);
    if (!prev || !next)
        return;
    settle(g, prev, e->cpu);
    if (is_visible(g, prev) && is_visible(g, next))
        put_switch(g, e, &s, next);
    if (next->left && e->time > next->left)
        next->off_cpu += e->time - next->left;
    next->left = 0;
    prev->left = e->time;
    if (!strcmp(why_left(s.state), "ends"))
        forget_thread(g, prev);
}

static void on_result(struct graph *g, struct graph_thread *t,
                      const struct trace_event *e, enum kind kind,
                      uint32_t result)
{
    char text[24];

    snprintf(text, sizeof(text), " = %" PRId32, (int32_t)result);
    close_call(g, t, e, kind, 0, NULL, text);
}

// Each page fault has events of its own, between which it is a call: so its
// exception is not shown, too.
static bool is_page_fault(const struct trace_event *e)
{
    enum { PAGE_FAULT_VECTOR = 14 };
    struct trace_trap_exception x;

    return trace_fields(e, &x, sizeof(x)) && x.vector == PAGE_FAULT_VECTOR;
}

// Calls that begin and end: true if the event is one of them.
static bool on_nested(struct graph *g, struct graph_thread *t,
                      const struct trace_event *e)
{
    uint32_t f[2] = { 0 };

    memcpy(f, e->fields, sizeof(f));
    switch (e->type) {
    case TRACE_R_ENTRY:
        on_entry(g, t, e);
        return true;
    case TRACE_R_EXIT:
        on_exit_of(g, t, e);
        return true;
    case TRACE_syscall_enter: // from user mode: nothing is open
        drop_to(g, t, e->cpu, 0);
        open_call(g, t, e, CALL, f[0], NO_MARK);
        return true;
    case TRACE_syscall_exit:
        on_result(g, t, e, CALL, f[1]);
        return true;
    case TRACE_irq_enter:
        open_call(g, t, e, INTERRUPT, f[0], NO_MARK);
        return true;
    case TRACE_irq_exit:
        close_call(g, t, e, INTERRUPT, f[0], NULL, "");
        return true;
    case TRACE_page_fault:
        open_call(g, t, e, FAULT, f[0], NO_MARK);
        return true;
    case TRACE_page_fault_end:
        on_result(g, t, e, FAULT, f[0]);
        return true;
    default:
        return false;
    }
}

// Events that are a line.
static void on_note(struct graph *g, struct graph_thread *t,
                    const struct trace_event *e)
{
    uint32_t f[2] = { 0 };

    memcpy(f, e->fields, sizeof(f));
    if (!is_visible(g, t))
        return;
    switch (e->type) {
    case TRACE_sched_wake:
        note(g, t, e);
        put(g, "-- wakes ");
        put(g, g->thread(g->arg, f[0]));
        put_format(g, ", for CPU %" PRIu32 " --\n", f[1]);
        return;
    case TRACE_task_fork:
        note(g, t, e);
        put_format(g, "-- forks task %" PRIu32 " --\n", f[1]);
        return;
    case TRACE_task_exec:
        note(g, t, e);
        put_format(g, "-- executes a new program --\n");
        return;
    case TRACE_task_exit:
        note(g, t, e);
        if (f[1] & 0x7f)
            put_format(g, "-- task %" PRIu32 " ends by signal %" PRIu32 " --\n",
                       f[0], f[1] & 0x7f);
        else
            put_format(g, "-- task %" PRIu32 " ends, status %" PRIu32 " --\n",
                       f[0], f[1] >> 8 & 0xff);
        return;
    case TRACE_trap_exception:
        if (is_page_fault(e))
            return;
        note(g, t, e);
        put_format(g, "-- exception %" PRIu32 " at %#" PRIx32 " --\n", f[0],
                   f[1]);
        return;
    default:
        return;
    }
}

// The stack of the running thread is not known any more.
// What the CPU's threads did meanwhile is not known, of those that left it
// meanwhile, too.
static void on_lost(struct graph *g, const struct trace_event *e)
{
    uint32_t count = 0;

    memcpy(&count, e->fields, sizeof(count));
    for (struct graph_thread *t = g->threads; t; t = t->next) {
        if (t->cpu != e->cpu)
            continue;
        settle(g, t, e->cpu);
        t->depth = 0;
        t->left = 0;
        t->waits = false;
    }
    begin_other(g, e->cpu);
    put_format(g, "==== %" PRIu32 " events are LOST ====\n", count);
}

void graph_event(struct graph *g, const struct trace_event *e)
{
    struct graph_thread *t;

    if (e->type == TRACE_sched_switch) {
        on_switch(g, e);
        return;
    }
    t = find_thread(g, e->thread, e->cpu);
    if (!t)
        return;
    t->cpu = e->cpu;
    if (e->type == TRACE_R_LOST)
        on_lost(g, e);
    else if (!on_nested(g, t, e))
        on_note(g, t, e);
}

void graph_print_titles(struct graph *g)
{
    put_format(g, "CPU  %-16s %9s  %s\n", "Thread", "Duration", "Function");
}

void graph_finish(struct graph *g)
{
    while (g->threads) {
        struct graph_thread *t = g->threads;
        settle(g, t, t->cpu);
        g->threads = t->next;
        free(t);
    }
    graph_flush(g);
}
