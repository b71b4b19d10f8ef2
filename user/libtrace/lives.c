// One state for each thread, which switches and wakes change. A piece is added
// to its sum when it ends.
#include "lives.h"

#include <stdlib.h>
#include <string.h>

// What thread states are called in a switch's record: those of the kernel.
enum { RUNNING, READY, SLEEPING, WAITING, STOPPED, DEAD };

// What precedes a loss has been ended there.
uint64_t lives_time(const struct lives *l, const struct trace_event *e,
                    uint32_t low)
{
    uint64_t at = e->time - (uint32_t)((uint32_t)e->time - low);

    return at > l->lost_at ? at : l->lost_at;
}

// --- threads ----------------------------------------------------------------

struct life *lives_find(struct lives *l, uint32_t thread)
{
    for (uint32_t i = l->count; i--;) {
        if (l->all[i].thread == thread)
            return &l->all[i];
    }
    return NULL;
}

static struct life *life_of(struct lives *l, uint32_t thread)
{
    struct life *t = lives_find(l, thread);

    if (t && t->state != LIFE_ENDED)
        return t;
    if (l->count == l->room) {
        uint32_t room = l->room ? l->room * 2 : 64;
        struct life *more = realloc(l->all, room * sizeof(*more));
        if (!more) {
            l->no_memory = true;
            return NULL;
        }
        l->all = more;
        l->room = room;
    }
    t = &l->all[l->count++];
    *t = (struct life){ .thread = thread };
    return t;
}

// Ends the current piece at `at`, of which `interrupted` was an interrupt's.
static void end_piece(struct lives *l, struct life *t, uint64_t at,
                      uint64_t interrupted)
{
    uint64_t cycles = at > t->since ? at - t->since : 0;

    if (l->piece && cycles && t->state != LIFE_UNKNOWN &&
        t->state != LIFE_ENDED)
        l->piece(l->arg, t, at);

    switch (t->state) {
    case LIFE_RUNNING:
        t->running += cycles - interrupted;
        t->interrupted += interrupted;
        break;
    case LIFE_READY:
        t->ready += cycles;
        break;
    case LIFE_BLOCKED:
        t->blocked += cycles;
        break;
    case LIFE_UNKNOWN:
        if (t->began)
            t->gaps += cycles;
        break;
    case LIFE_ENDED:
        return;
    }
    t->until = at;
}

static void begin_piece(struct life *t, uint64_t at, enum life_state state)
{
    if (!t->began)
        t->began = t->until = at;
    t->since = at;
    t->state = state;
}

// --- events -----------------------------------------------------------------

static enum life_state state_after(uint8_t state)
{
    return state == RUNNING || state == READY ? LIFE_READY
           : state == DEAD                    ? LIFE_ENDED
                                              : LIFE_BLOCKED;
}

static void leave(struct lives *l, uint32_t thread, uint64_t at,
                  uint64_t interrupted, uint8_t state)
{
    struct life *t = thread ? life_of(l, thread) : NULL;

    if (!t)
        return;
    l->contradictions += t->state == LIFE_READY || t->state == LIFE_BLOCKED;
    end_piece(l, t, at, interrupted);
    begin_piece(t, at, state_after(state));
}

static void arrive(struct lives *l, uint32_t thread, uint32_t cpu, uint64_t at)
{
    struct life *t = thread ? life_of(l, thread) : NULL;

    if (!t)
        return;
    l->contradictions += t->state == LIFE_RUNNING || t->state == LIFE_BLOCKED;
    end_piece(l, t, at, 0);
    begin_piece(t, at, LIFE_RUNNING);
    t->cpu = cpu;
    t->switches++;
}

static void made_ready(struct lives *l, uint32_t thread, uint64_t at)
{
    struct life *t = life_of(l, thread);

    if (!t)
        return;
    l->contradictions += t->state == LIFE_RUNNING || t->state == LIFE_READY;
    end_piece(l, t, at, 0);
    begin_piece(t, at, LIFE_READY);
}

// The time of the CPU's current thread since it came.
static void charge_cpu(struct lives *l, uint32_t cpu, uint64_t at)
{
    uint64_t cycles = at > l->cpu[cpu].since ? at - l->cpu[cpu].since : 0;

    *(l->cpu[cpu].thread ? &l->cpu[cpu].busy : &l->cpu[cpu].idle) +=
        cycles - l->cpu[cpu].interrupted;
    l->cpu[cpu].interrupts += l->cpu[cpu].interrupted;
}

static void set_running(struct lives *l, uint32_t cpu, uint32_t thread,
                        uint64_t at)
{
    l->cpu[cpu].known = true;
    l->cpu[cpu].thread = thread;
    l->cpu[cpu].since = at;
    l->cpu[cpu].interrupted = 0;
}

// The CPU's first event: its thread, of a switch the one that leaves, has run
// before.
static void begin_cpu(struct lives *l, const struct trace_event *e, uint64_t at)
{
    struct life *t = e->thread ? life_of(l, e->thread) : NULL;

    set_running(l, e->cpu, e->thread, at);
    if (!t)
        return;
    l->contradictions += t->state != LIFE_UNKNOWN;
    end_piece(l, t, at, 0);
    begin_piece(t, at, LIFE_RUNNING);
    t->cpu = e->cpu;
}

// Ends all open pieces: what follows is not known.
static void end_all(struct lives *l, uint64_t at)
{
    for (uint32_t i = 0; i < TRACE_CPUS_MAX; i++) {
        if (!l->cpu[i].known)
            continue;
        struct life *t = lives_find(l, l->cpu[i].thread);
        charge_cpu(l, i, at);
        if (t && t->state == LIFE_RUNNING) {
            end_piece(l, t, at, l->cpu[i].interrupted);
            begin_piece(t, at, LIFE_UNKNOWN);
        }
        l->cpu[i].known = false;
        l->cpu[i].depth = 0;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        struct life *t = &l->all[i];
        if (t->state == LIFE_ENDED || t->state == LIFE_UNKNOWN)
            continue;
        end_piece(l, t, at, 0);
        begin_piece(t, at, LIFE_UNKNOWN);
    }
}

static void on_switch(struct lives *l, const struct trace_event *e)
{
    struct trace_sched_switch s;

    if (!trace_fields(e, &s, sizeof(s)))
        return;
    uint64_t at = lives_time(l, e, s.at);
    if (!l->cpu[e->cpu].known)
        begin_cpu(l, e, at);
    charge_cpu(l, e->cpu, at);
    leave(l, s.prev, at, l->cpu[e->cpu].interrupted, s.state);
    arrive(l, s.next, e->cpu, at);
    set_running(l, e->cpu, s.next, at);
}

static void on_wake(struct lives *l, const struct trace_event *e)
{
    struct trace_sched_wake w;

    if (trace_fields(e, &w, sizeof(w)))
        made_ready(l, w.thread, lives_time(l, e, w.at));
}

// Nested interrupts are a part of the outermost one.
static void on_interrupt(struct lives *l, const struct trace_event *e)
{
    struct trace_irq_enter i;

    if (!trace_fields(e, &i, sizeof(i)))
        return;
    uint64_t at = lives_time(l, e, i.at);
    if (!l->cpu[e->cpu].known)
        begin_cpu(l, e, at);
    if (!l->cpu[e->cpu].depth++)
        l->cpu[e->cpu].interrupt_at = at;
}

static void on_return(struct lives *l, const struct trace_event *e)
{
    struct trace_irq_return r;

    if (!trace_fields(e, &r, sizeof(r)))
        return;
    uint64_t at = lives_time(l, e, r.at);
    if (!l->cpu[e->cpu].known)
        begin_cpu(l, e, at);
    if (l->cpu[e->cpu].depth && !--l->cpu[e->cpu].depth)
        l->cpu[e->cpu].interrupted += at - l->cpu[e->cpu].interrupt_at;
}

void lives_event(struct lives *l, const struct trace_event *e)
{
    if (e->partial)
        return;
    switch (e->type) {
    case TRACE_sched_switch:
        on_switch(l, e);
        break;
    case TRACE_sched_wake:
        on_wake(l, e);
        break;
    case TRACE_irq_enter:
        on_interrupt(l, e);
        break;
    case TRACE_irq_return:
        on_return(l, e);
        break;
    case TRACE_R_LOST:
        if (l->contradictions > l->cpu[e->cpu].contradictions)
            l->contradictions = l->cpu[e->cpu].contradictions;
        end_all(l, e->time);
        l->lost_at = e->time;
        break;
    default:
        if (!l->cpu[e->cpu].known)
            begin_cpu(l, e, e->time);
    }
    l->cpu[e->cpu].contradictions = l->contradictions;
}

void lives_finish(struct lives *l, uint64_t time)
{
    end_all(l, time);
}

void lives_free(struct lives *l)
{
    free(l->all);
    l->all = NULL;
    l->count = l->room = 0;
}
