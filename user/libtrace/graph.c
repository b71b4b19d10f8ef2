// One stack of open calls for each thread. A call is printed as one line, if it
// called nothing that is shown, else as a line when it begins and one when it
// ends. So the line of an entry waits until the thread's next event; if short
// calls are left out, until one within it is long enough, or it ends.
//
// Interrupts, page faults and system calls are calls on the same stack.
#include "graph_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NO_MARK UINT32_MAX // of calls that are no function's

// The entries that are due, outermost first, down to the innermost call.
static void show_open(struct graph *g, struct graph_thread *t)
{
    for (; t->shown < t->depth; t->shown++) {
        char *at = graph_line(g, t, t->shown);
        at = put_call(at, &t->open[t->shown]);
        end_line(g, PUT(at, " {\n"));
    }
}

// Before another event of the thread: the innermost call is no leaf.
static inline void settle(struct graph *g, struct graph_thread *t)
{
    if (t->shown < t->depth && !g->min_cycles)
        show_open(g, t);
}

// Whether events at this place are shown: those in calls that may yet be left
// out are not.
static bool is_visible(const struct graph *g, const struct graph_thread *t)
{
    return !g->min_cycles || t->shown == t->depth;
}

// --- threads ----------------------------------------------------------------

static bool is_of(const struct graph_thread *t, uint32_t thread, uint32_t cpu)
{
    return t->thread == thread && (thread || t->cpu == cpu);
}

static struct graph_thread *add_thread(struct graph *g, uint32_t thread,
                                       uint32_t cpu)
{
    struct graph_thread *t = malloc(sizeof(*t));

    if (!t) {
        g->no_memory = true;
        return NULL;
    }
    memset(t, 0, offsetof(struct graph_thread, open));
    t->thread = thread;
    t->cpu = cpu;
    t->next = g->threads;
    g->threads = t;
    return t;
}

static struct graph_thread *search_thread(struct graph *g, uint32_t thread,
                                          uint32_t cpu)
{
    struct graph_thread **at = &g->threads, *t;

    for (; (t = *at); at = &t->next) {
        if (!is_of(t, thread, cpu))
            continue;
        *at = t->next; // to the front
        t->next = g->threads;
        g->threads = t;
        return t;
    }
    return add_thread(g, thread, cpu);
}

// Most often it is the one that was looked for last.
static inline struct graph_thread *find_thread(struct graph *g, uint32_t thread,
                                               uint32_t cpu)
{
    return g->threads && is_of(g->threads, thread, cpu)
               ? g->threads
               : search_thread(g, thread, cpu);
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

// `name` is a function's.
static inline void open_call(struct graph *g, struct graph_thread *t,
                             const struct trace_event *e, enum kind kind,
                             uint32_t what, uint32_t mark,
                             const struct calls_name *name)
{
    settle(g, t);
    if (t->depth == DEPTH_MAX)
        return;
    t->open[t->depth++] = (struct open_call){ .kind = kind,
                                              .what = what,
                                              .mark = mark,
                                              .name = name,
                                              .time = e->time,
                                              .off_cpu = t->off_cpu };
}

static inline void set_depth(struct graph_thread *t, uint32_t depth)
{
    t->depth = depth;
    if (t->shown > depth)
        t->shown = depth;
}

// Drops calls that were left without a return, down to `depth`.
static void drop_to(struct graph *g, struct graph_thread *t, uint32_t depth)
{
    while (t->depth > depth) {
        settle(g, t);
        bool shown = t->shown == t->depth;
        set_depth(t, t->depth - 1);
        if (!shown)
            continue;
        char *at = graph_line(g, t, t->depth);
        at = put_call(PUT(at, "} (no return: "), &t->open[t->depth]);
        end_line(g, PUT(at, ")\n"));
    }
}

static inline bool is_call(const struct open_call *c, enum kind kind,
                           uint32_t what)
{
    return c->kind == kind && (!what || c->what == what);
}

static const struct open_call *search_call(struct graph *g,
                                           struct graph_thread *t,
                                           enum kind kind, uint32_t what)
{
    uint32_t n = t->depth;

    while (n && !is_call(&t->open[n - 1], kind, what))
        n--;
    if (!n)
        return NULL;
    drop_to(g, t, n);
    return &t->open[n - 1];
}

// The innermost open call of this kind, with `what` unless it is 0. Calls
// within it are dropped. NULL: there is none.
static inline const struct open_call *find_call(struct graph *g,
                                                struct graph_thread *t,
                                                enum kind kind, uint32_t what)
{
    const struct open_call *c = t->open + t->depth - 1;

    return t->depth && is_call(c, kind, what) ? c
                                              : search_call(g, t, kind, what);
}

// The innermost call ends, which is `c`. `result` NULL: it has none.
static inline void close_call(struct graph *g, struct graph_thread *t,
                              const struct open_call *c, uint64_t cycles,
                              const int32_t *result)
{
    uint32_t depth = t->depth - 1;
    bool leaf = t->shown <= depth;

    t->depth = depth;
    if (leaf && cycles < g->min_cycles)
        return;
    if (leaf)
        show_open(g, t); // its callers
    t->shown = depth;
    char *at = graph_timed_line(g, t, depth, cycles);
    if (!leaf)
        at = PUT(at, "} ");
    at = put_call(at, c);
    if (leaf && c->kind == FUNCTION)
        at = PUT(at, "();");
    if (result)
        at = put_result(at, *result);
    end_line(g, PUT(at, "\n"));
}

// The time since it began, without that off the CPU.
static void close_timed(struct graph *g, struct graph_thread *t,
                        const struct trace_event *e, enum kind kind,
                        uint32_t what, const int32_t *result)
{
    const struct open_call *c = find_call(g, t, kind, what);

    if (c)
        close_call(g, t, c, e->time - c->time - (t->off_cpu - c->off_cpu),
                   result);
}

// A return whose call was lost.
static void close_unknown(struct graph *g, struct graph_thread *t,
                          uint32_t function, uint64_t cycles)
{
    if (cycles < g->min_cycles || !is_visible(g, t))
        return;
    char *at = PUT(graph_timed_line(g, t, t->depth, cycles), "} ");
    const struct calls_name *name = g->function(function);
    at = put(at, name->name, name->length);
    end_line(g, PUT(at, " (its call is missing)\n"));
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
        drop_to(g, t, depth);
    g->calls++;
    open_call(g, t, e, FUNCTION, fields[0], fields[1], g->function(fields[0]));
}

static void on_exit_of(struct graph *g, struct graph_thread *t,
                       const struct trace_event *e)
{
    uint32_t fields[3]; // function, cycles

    if (e->size < sizeof(fields))
        return;
    memcpy(fields, e->fields, sizeof(fields));
    uint64_t cycles = (uint64_t)fields[2] << 32 | fields[1];
    const struct open_call *c = find_call(g, t, FUNCTION, fields[0]);
    if (c)
        close_call(g, t, c, cycles, NULL);
    else
        close_unknown(g, t, fields[0], cycles);
}

// --- other events -----------------------------------------------------------

// A line between the calls.
static char *note(struct graph *g, struct graph_thread *t)
{
    settle(g, t);
    return graph_line(g, t, t->depth);
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
    char *at = graph_other_line(g, e->cpu);

    at = put_text(PUT(at, "---- "), g->thread(s->prev));
    if (s->prev)
        at = put_text(PUT(at, " "), why_left(s->state));
    at = put_text(PUT(at, " -> "), g->thread(s->next));
    if (s->next && next->left && e->time > next->left)
        at = put_duration(g, PUT(at, ", which was away for "),
                          e->time - next->left);
    end_line(g, PUT(at, " ----\n"));
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
    prev->cpu = next->cpu = e->cpu;
    settle(g, prev);
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
                      uint32_t word)
{
    int32_t result = (int32_t)word;

    close_timed(g, t, e, kind, 0, &result);
}

// Each page fault has events of its own, between which it is a call: so its
// exception is not shown, too.
static bool is_page_fault(const struct trace_event *e)
{
    enum { PAGE_FAULT_VECTOR = 14 };
    struct trace_trap_exception x;

    return trace_fields(e, &x, sizeof(x)) && x.vector == PAGE_FAULT_VECTOR;
}

// Calls that begin and end, but functions: true if the event is one of them.
static bool on_nested(struct graph *g, struct graph_thread *t,
                      const struct trace_event *e)
{
    uint32_t f[2] = { 0 };

    memcpy(f, e->fields, sizeof(f));
    switch (e->type) {
    case TRACE_syscall_enter: // from user mode: nothing is open
        drop_to(g, t, 0);
        open_call(g, t, e, CALL, f[0], NO_MARK, NULL);
        return true;
    case TRACE_syscall_exit:
        on_result(g, t, e, CALL, f[1]);
        return true;
    case TRACE_irq_enter:
        open_call(g, t, e, INTERRUPT, f[0], NO_MARK, NULL);
        return true;
    case TRACE_irq_exit:
        close_timed(g, t, e, INTERRUPT, f[0], NULL);
        return true;
    case TRACE_page_fault:
        open_call(g, t, e, FAULT, f[0], NO_MARK, NULL);
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
    char *at;
    switch (e->type) {
    case TRACE_sched_wake:
        at = PUT(note(g, t), "-- wakes ");
        at = put_text(at, g->thread(f[0]));
        at += sprintf(at, ", for CPU %" PRIu32 " --\n", f[1]);
        break;
    case TRACE_task_fork:
        at = note(g, t);
        at += sprintf(at, "-- forks task %" PRIu32 " --\n", f[1]);
        break;
    case TRACE_task_exec:
        at = PUT(note(g, t), "-- executes a new program --\n");
        break;
    case TRACE_task_exit:
        at = note(g, t);
        if (f[1] & 0x7f)
            at += sprintf(at,
                          "-- task %" PRIu32 " ends by signal %" PRIu32 " --\n",
                          f[0], f[1] & 0x7f);
        else
            at +=
                sprintf(at, "-- task %" PRIu32 " ends, status %" PRIu32 " --\n",
                        f[0], f[1] >> 8 & 0xff);
        break;
    case TRACE_trap_exception:
        if (is_page_fault(e))
            return;
        at = note(g, t);
        at += sprintf(at, "-- exception %" PRIu32 " at %#" PRIx32 " --\n", f[0],
                      f[1]);
        break;
    default:
        return;
    }
    end_line(g, at);
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
        settle(g, t);
        t->depth = t->shown = 0;
        t->left = 0;
    }
    char *at = graph_other_line(g, e->cpu);
    at += sprintf(at, "==== %" PRIu32 " events are LOST ====\n", count);
    end_line(g, at);
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
    if (e->type == TRACE_R_EXIT)
        on_exit_of(g, t, e);
    else if (e->type == TRACE_R_ENTRY)
        on_entry(g, t, e);
    else if (e->type == TRACE_R_LOST)
        on_lost(g, e);
    else if (!on_nested(g, t, e))
        on_note(g, t, e);
}

void graph_forget_names(struct graph *g)
{
    for (struct graph_thread *t = g->threads; t; t = t->next)
        t->begin_length = 0;
}

void graph_finish(struct graph *g)
{
    while (g->threads) {
        struct graph_thread *t = g->threads;
        settle(g, t);
        g->threads = t->next;
        free(t);
    }
    graph_flush(g);
}
