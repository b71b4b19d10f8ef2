// Each thread has at most one open call and, in it or not, one open page fault.
// Handlers of interrupts nest on their CPU. A loss makes all that is open
// unknown.
#include "spans.h"

#include <stdlib.h>
#include <string.h>

struct opened {
    uint32_t thread;
    bool in_call, in_fault;
    struct span call, fault;
};

static uint32_t word(const struct trace_event *e, uint32_t n)
{
    uint32_t w;

    memcpy(&w, e->fields + n * 4, sizeof(w));
    return w;
}

static struct span begun(const struct trace_event *e, enum span_kind kind)
{
    return (struct span){ .kind = kind,
                          .cpu = e->cpu,
                          .thread = e->thread,
                          .what = word(e, 0),
                          .begin = e->time };
}

static void tell(struct spans *s, struct span *span, uint64_t end, bool whole)
{
    span->end = end;
    span->whole = whole;
    s->span(s->arg, span);
}

static void tell_whole(struct spans *s, struct span *span,
                       const struct trace_event *e, uint32_t result)
{
    span->cpu = e->cpu;
    span->result = result;
    tell(s, span, e->time, true);
}

static struct opened *opened_of(struct spans *s, uint32_t thread)
{
    for (uint32_t i = s->count; i--;) {
        if (s->threads[i].thread == thread)
            return &s->threads[i];
    }
    if (s->count == s->room) {
        uint32_t room = s->room ? s->room * 2 : 64;
        struct opened *more = realloc(s->threads, room * sizeof(*more));
        if (!more) {
            s->no_memory = true;
            return NULL;
        }
        s->threads = more;
        s->room = room;
    }
    struct opened *t = &s->threads[s->count++];
    *t = (struct opened){ .thread = thread };
    return t;
}

// --- events -----------------------------------------------------------------

static void on_call(struct spans *s, const struct trace_event *e)
{
    struct opened *t = opened_of(s, e->thread);

    if (!t)
        return;
    s->calls_unpaired += t->in_call;
    t->in_call = true;
    t->call = begun(e, SPAN_CALL);
}

static void on_call_end(struct spans *s, const struct trace_event *e)
{
    struct opened *t = opened_of(s, e->thread);

    if (!t || !t->in_call) // it began before the trace, or with a fork
        return;
    t->in_call = false;
    tell_whole(s, &t->call, e, word(e, 1));
}

static void on_fault(struct spans *s, const struct trace_event *e)
{
    struct opened *t = opened_of(s, e->thread);

    if (!t)
        return;
    t->in_fault = true;
    t->fault = begun(e, SPAN_FAULT);
}

static void on_fault_end(struct spans *s, const struct trace_event *e)
{
    struct opened *t = opened_of(s, e->thread);

    if (!t || !t->in_fault)
        return;
    t->in_fault = false;
    tell_whole(s, &t->fault, e, word(e, 0));
}

static void on_irq(struct spans *s, const struct trace_event *e)
{
    uint32_t depth = s->cpu[e->cpu].depth++;

    if (depth < SPAN_DEPTH_MAX)
        s->cpu[e->cpu].open[depth] = begun(e, SPAN_INTERRUPT);
}

static void on_irq_end(struct spans *s, const struct trace_event *e)
{
    uint32_t *depth = &s->cpu[e->cpu].depth;

    if (*depth && --*depth < SPAN_DEPTH_MAX)
        tell_whole(s, &s->cpu[e->cpu].open[*depth], e, 0);
}

static void close_all(struct spans *s, struct opened *t, uint64_t time)
{
    if (t->in_fault)
        tell(s, &t->fault, time, false);
    if (t->in_call)
        tell(s, &t->call, time, false);
}

// A thread that ends leaves its call open.
static void on_switch(struct spans *s, const struct trace_event *e)
{
    struct trace_sched_switch change;
    enum { DEAD = 5 };

    if (!trace_fields(e, &change, sizeof(change)) || change.state != DEAD)
        return;
    struct opened *t = opened_of(s, change.prev);
    if (!t)
        return;
    s->calls_ended += t->in_call;
    close_all(s, t, e->time);
    *t = s->threads[--s->count];
}

static void on_loss(struct spans *s)
{
    s->count = 0;
    memset(s->cpu, 0, sizeof(s->cpu));
}

void spans_event(struct spans *s, const struct trace_event *e)
{
    if (e->partial)
        return;
    switch (e->type) {
    case TRACE_syscall_enter:
        on_call(s, e);
        break;
    case TRACE_syscall_exit:
        on_call_end(s, e);
        break;
    case TRACE_page_fault:
        on_fault(s, e);
        break;
    case TRACE_page_fault_end:
        on_fault_end(s, e);
        break;
    case TRACE_irq_enter:
        on_irq(s, e);
        break;
    case TRACE_irq_exit:
        on_irq_end(s, e);
        break;
    case TRACE_sched_switch:
        on_switch(s, e);
        break;
    case TRACE_R_LOST:
        on_loss(s);
        break;
    }
}

void spans_finish(struct spans *s, uint64_t time)
{
    for (uint32_t i = 0; i < s->count; i++) {
        s->calls_open += s->threads[i].in_call;
        close_all(s, &s->threads[i], time);
    }
    s->count = 0;
}

void spans_free(struct spans *s)
{
    free(s->threads);
    s->threads = NULL;
    s->count = s->room = 0;
}
