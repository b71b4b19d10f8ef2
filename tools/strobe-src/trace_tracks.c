#include "trace_tracks.h"

#include "user/libtrace/report.h"
#include "user/libtrace/sensed.h"

#include <stdlib.h>
#include <string.h>

#define BIT(point) (1u << TRACE_##point)

uint64_t tracks_ns(const struct tracks *t, uint64_t time)
{
    return time > t->first ? trace_file_ns(t->file, time - t->first) : 0;
}

const char *tracks_text(struct tracks *t, const struct trace_event *e,
                        size_t *size)
{
    rewind(t->text);
    trace_event_text(t->text, t->file, e);
    fflush(t->text);
    *size = (size_t)ftello(t->text);
    return t->text_bytes;
}

const char *tracks_sensed_text(struct tracks *t, const struct recorded *one,
                               size_t *size)
{
    rewind(t->text);
    sensed_text(t->text, t->file, one);
    fflush(t->text);
    *size = (size_t)ftello(t->text);
    return t->text_bytes;
}

// Without memory for it a thread has no name.
static void need_track(struct tracks *t, uint32_t thread)
{
    for (uint32_t i = t->thread_count; i--;) {
        if (t->threads[i].thread == thread)
            return;
    }
    if (t->thread_count == t->thread_room) {
        uint32_t room = t->thread_room ? t->thread_room * 2 : 64;
        void *more = realloc(t->threads, room * sizeof(*t->threads));
        if (!more) {
            t->no_memory = true;
            return;
        }
        t->threads = more;
        t->thread_room = room;
    }
    struct track *new = &t->threads[t->thread_count++];
    new->thread = thread;
    trace_file_name(t->file, thread, &new->task);
    t->to->thread(t->arg, new);
}

// --- slices -----------------------------------------------------------------

static bool has_all(const struct tracks *t, uint32_t points)
{
    return (t->file->head.points & points) == points;
}

static void on_piece(void *arg, const struct life *l, uint64_t until)
{
    struct tracks *t = arg;
    bool all =
        !t->file->head.task && has_all(t, BIT(sched_switch) | BIT(sched_wake));

    if (!has_all(t, BIT(sched_switch)) || (!all && l->state != LIFE_RUNNING))
        return;
    need_track(t, l->thread);
    t->to->piece(t->arg, l, until);
}

static void on_span(void *arg, const struct span *s)
{
    struct tracks *t = arg;

    if (s->kind != SPAN_INTERRUPT)
        need_track(t, s->thread);
    t->to->span(t->arg, s);
}

// --- other events -----------------------------------------------------------

static void tell_switch(struct tracks *t, const struct trace_event *e)
{
    struct trace_sched_switch s;

    if (t->file->head.task || !trace_fields(e, &s, sizeof(s)))
        return;
    if (s.prev)
        need_track(t, s.prev);
    if (s.next)
        need_track(t, s.next);
    t->to->sched(t->arg, e, lives_time(&t->lives, e, s.at));
}

// False: the event is told as a point.
static bool tell_wake(struct tracks *t, const struct trace_event *e)
{
    struct trace_sched_wake w;

    if (t->file->head.task || !trace_fields(e, &w, sizeof(w)))
        return false;
    need_track(t, w.thread);
    t->to->sched(t->arg, e, lives_time(&t->lives, e, w.at));
    return true;
}

static void tell_point(struct tracks *t, const struct trace_event *e)
{
    if (e->thread)
        need_track(t, e->thread);
    if (e->type != TRACE_sched_wake || !tell_wake(t, e))
        t->to->point(t->arg, e);
}

static void on_event(void *arg, const struct trace_event *e)
{
    struct tracks *t = arg;
    uint32_t count;

    if (!t->begun)
        t->first = e->time;
    t->begun = true;
    t->last = e->time;
    lives_event(&t->lives, e);
    spans_event(&t->spans, e);
    switch (e->type) {
    case TRACE_sched_switch:
        tell_switch(t, e);
        break;
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
        t->lost += count;
        t->to->lost(t->arg, e, e->time);
        break;
    default:
        tell_point(t, e);
    }
}

static void on_sensed(void *arg, const struct recorded *one)
{
    struct tracks *t = arg;
    uint32_t thread, cpu;

    if (!t->begun)
        t->first = one->tsc;
    t->begun = true;
    if (sensed_thread(one, &thread, &cpu) && thread)
        need_track(t, thread);
    t->to->sensed(t->arg, one);
}

// --- the file ---------------------------------------------------------------

static const char *tell(struct tracks *t)
{
    const struct trace_file_end *end = &t->file->end;
    uint64_t lost = (uint64_t)end->lost[1] << 32 | end->lost[0];

    t->file->sensed = on_sensed;
    const char *problem = trace_file_events(t->file, on_event, t);
    t->file->sensed = NULL;

    lives_finish(&t->lives, t->last);
    spans_finish(&t->spans, t->last);
    if (t->file->has_end && lost > t->lost) {
        t->lost = lost;
        t->to->lost(t->arg, NULL, t->last);
    }
    if (!problem && (t->lives.no_memory || t->spans.no_memory || t->no_memory))
        problem = "not enough memory: slices are missing";
    return problem;
}

const char *tracks_tell(struct tracks *t)
{
    t->lives.piece = on_piece;
    t->lives.arg = t;
    t->spans.span = on_span;
    t->spans.arg = t;
    t->text = open_memstream(&t->text_bytes, &t->text_size);
    return t->text ? tell(t) : "not enough memory";
}

void tracks_free(struct tracks *t)
{
    if (t->text)
        fclose(t->text);
    lives_free(&t->lives);
    spans_free(&t->spans);
    free(t->text_bytes);
    free(t->threads);
}
