// One stack of open calls for each thread. A call is printed as one line, if it
// called nothing that is shown, else as a line when it begins and one when it
// ends. So the line of an entry waits until the thread's next event; if short
// calls are left out, until one within it is long enough, or it ends.
//
// Interrupts, page faults and system calls are calls on the same stack.
#include "graph.h"

#include "user/libstrobe/strobe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 512u
#define NO_MARK UINT32_MAX // of calls that are no function's

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

// There are thousands of lines. Each is put together here, and written at once.
struct line {
    uint32_t length;
    char text[2 * DEPTH_MAX + 1024]; // what does not fit is left out
};

static void put(struct line *l, const char *text)
{
    while (*text && l->length < sizeof(l->text))
        l->text[l->length++] = *text++;
}

static void put_spaces(struct line *l, uint32_t count)
{
    uint32_t room = (uint32_t)sizeof(l->text) - l->length;

    count = count < room ? count : room;
    memset(l->text + l->length, ' ', count);
    l->length += count;
}

// Right-aligned, if it is not wider.
static void put_right(struct line *l, const char *text, uint32_t width)
{
    uint32_t length = (uint32_t)strlen(text);

    put_spaces(l, length < width ? width - length : 0);
    put(l, text);
}

static void write_line(const struct graph *g, const struct line *l)
{
    fwrite(l->text, 1, l->length, g->out);
}

static const char *duration_text(char text[32], uint64_t ns)
{
    const char *unit = ns < 10000 ? "ns" : ns < 10000000 ? "us" : "ms";
    uint32_t thousandth = ns < 10000 ? 0 : ns < 10000000 ? 1 : 1000;
    char *end = text;

    if (thousandth) {
        uint64_t tenths = ns / (100 * thousandth);
        end = put_decimal(end, tenths / 10);
        *end++ = '.';
        ns = tenths % 10;
    }
    strcpy(put_decimal(end, ns), unit);
    return text;
}

static uint64_t to_ns(const struct graph *g, uint64_t cycles)
{
    uint64_t hz = g->tsc_hz ? g->tsc_hz : 1;

    return cycles / hz * 1000000000 + cycles % hz * 1000000000 / hz;
}

// Everything before the text of a line. `cycles` NULL: it has no duration.
static void begin_line(struct line *l, const struct graph *g, uint32_t cpu,
                       uint32_t thread, const uint64_t *cycles, uint32_t depth)
{
    char text[32];

    l->length = 0;
    put_decimal(text, cpu);
    put_right(l, text, 3);
    put(l, "  ");
    uint32_t column = l->length + 16;
    text[0] = '\0';
    g->thread(g->arg, thread, text);
    put(l, text);
    put_spaces(l, 1 + (l->length < column ? column - l->length : 0));
    text[0] = '\0';
    if (cycles)
        duration_text(text, to_ns(g, *cycles));
    put_right(l, text, 9);
    put_spaces(l, 2 + 2 * depth);
}

static void put_name(struct line *l, const struct graph *g,
                     const struct open_call *c)
{
    char text[64];

    switch (c->kind) {
    case FUNCTION:
        put(l, g->function(g->arg, c->what));
        return;
    case INTERRUPT:
        snprintf(text, sizeof(text), "[interrupt %" PRIu32 "]", c->what);
        break;
    case FAULT:
        snprintf(text, sizeof(text), "[page fault at %#" PRIx32 "]", c->what);
        break;
    case CALL:
        snprintf(text, sizeof(text), "[system call %s]",
                 trace_call_name(c->what));
        break;
    }
    put(l, text);
}

// The entries that are due, outermost first, down to the innermost call.
static void show_open(struct graph *g, struct graph_thread *t, uint32_t cpu)
{
    struct line l;

    for (uint32_t i = 0; i < t->depth; i++) {
        struct open_call *c = &t->open[i];
        if (c->shown)
            continue;
        c->shown = true;
        begin_line(&l, g, cpu, t->thread, NULL, i);
        put_name(&l, g, c);
        put(&l, " {\n");
        write_line(g, &l);
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
    struct line l;

    while (t->depth > depth) {
        settle(g, t, cpu);
        struct open_call *c = &t->open[--t->depth];
        if (!c->shown)
            continue;
        begin_line(&l, g, cpu, t->thread, NULL, t->depth);
        put(&l, "} (no return: ");
        put_name(&l, g, c);
        put(&l, ")\n");
        write_line(g, &l);
    }
    t->waits = false;
}

static void close_line(struct graph *g, struct graph_thread *t, uint32_t cpu,
                       uint64_t cycles, const char *result)
{
    struct open_call *c = &t->open[t->depth - 1];
    bool opened = c->shown;
    struct line l;

    if (!opened && g->min_cycles) {
        t->depth--; // its callers
        show_open(g, t, cpu);
        t->depth++;
    }
    begin_line(&l, g, cpu, t->thread, &cycles, t->depth - 1);
    if (opened)
        put(&l, "} ");
    put_name(&l, g, c);
    if (!opened && c->kind == FUNCTION)
        put(&l, "();");
    put(&l, result);
    put(&l, "\n");
    write_line(g, &l);
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
    struct line l;
    begin_line(&l, g, e->cpu, t->thread, &cycles, t->depth);
    put(&l, "} ");
    put(&l, g->function(g->arg, function));
    put(&l, " (its call is missing)\n");
    write_line(g, &l);
}

static void on_entry(struct graph *g, struct graph_thread *t,
                     const struct trace_event *e)
{
    uint32_t fields[2], depth = t->depth; // function, mark

    if (!trace_fields(e, fields, sizeof(fields)))
        return;
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

    if (!trace_fields(e, fields, sizeof(fields)))
        return;
    uint64_t cycles = (uint64_t)fields[2] << 32 | fields[1];
    if (!close_call(g, t, e, FUNCTION, fields[0], &cycles, ""))
        close_unknown(g, t, e, fields[0], cycles);
}

// --- other events -----------------------------------------------------------

// A line between the calls.
static void note(struct graph *g, struct graph_thread *t,
                 const struct trace_event *e)
{
    struct line l;

    settle(g, t, e->cpu);
    begin_line(&l, g, e->cpu, t->thread, NULL, t->depth);
    write_line(g, &l);
}

static const char *why_left(uint8_t state)
{
    static const char *const words[] = { "runs",  "ready",   "sleeps",
                                         "waits", "stopped", "ends" };

    return state < sizeof(words) / sizeof(words[0]) ? words[state] : "?";
}

static void on_switch(struct graph *g, const struct trace_event *e)
{
    struct trace_sched_switch s;
    char from[32] = "", to[32] = "";

    if (!trace_fields(e, &s, sizeof(s)))
        return;
    struct graph_thread *prev = find_thread(g, s.prev, e->cpu);
    struct graph_thread *next = find_thread(g, s.next, e->cpu);
    if (!prev || !next)
        return;
    settle(g, prev, e->cpu);
    g->thread(g->arg, s.prev, from);
    g->thread(g->arg, s.next, to);
    if (is_visible(g, prev) && is_visible(g, next)) {
        fprintf(g->out, "%3" PRIu32 "  ---- %s%s%s -> %s", e->cpu, from,
                s.prev ? " " : "", s.prev ? why_left(s.state) : "", to);
        if (s.next && next->left && e->time > next->left) {
            char away[32];
            fprintf(g->out, ", which was away for %s",
                    duration_text(away, to_ns(g, e->time - next->left)));
        }
        fputs(" ----\n", g->out);
    }
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
    char name[32] = "";

    memcpy(f, e->fields, sizeof(f));
    if (!is_visible(g, t))
        return;
    switch (e->type) {
    case TRACE_sched_wake:
        note(g, t, e);
        g->thread(g->arg, f[0], name);
        fprintf(g->out, "-- wakes %s, for CPU %" PRIu32 " --\n", name, f[1]);
        return;
    case TRACE_task_fork:
        note(g, t, e);
        fprintf(g->out, "-- forks task %" PRIu32 " --\n", f[1]);
        return;
    case TRACE_task_exec:
        note(g, t, e);
        fprintf(g->out, "-- executes a new program --\n");
        return;
    case TRACE_task_exit:
        note(g, t, e);
        if (f[1] & 0x7f)
            fprintf(g->out,
                    "-- task %" PRIu32 " ends by signal %" PRIu32 " --\n", f[0],
                    f[1] & 0x7f);
        else
            fprintf(g->out, "-- task %" PRIu32 " ends, status %" PRIu32 " --\n",
                    f[0], f[1] >> 8 & 0xff);
        return;
    case TRACE_trap_exception:
        if (is_page_fault(e))
            return;
        note(g, t, e);
        fprintf(g->out, "-- exception %" PRIu32 " at %#" PRIx32 " --\n", f[0],
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
    fprintf(g->out, "%3" PRIu32 "  ==== %" PRIu32 " events are LOST ====\n",
            e->cpu, count);
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
    fprintf(g->out, "CPU  %-16s %9s  %s\n", "Thread", "Duration", "Function");
}

void graph_finish(struct graph *g)
{
    while (g->threads) {
        struct graph_thread *t = g->threads;
        settle(g, t, t->cpu);
        g->threads = t->next;
        free(t);
    }
}
