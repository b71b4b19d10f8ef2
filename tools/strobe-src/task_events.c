#include "task_events.h"

#include "user/libprofile/perf_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add(struct task_events *t, const struct task_event *event)
{
    if (t->count == t->room) {
        t->room = t->room * 2 + 64;
        t->list = realloc(t->list, t->room * sizeof(*t->list));
        if (!t->list)
            fail(1, "not enough memory for the export");
    }
    t->list[t->count++] = *event;
}

// Skips a record that is too short: the reader of samples has counted it.
static void take_task(struct task_events *t, const struct perf_view *v)
{
    struct perf_task r;

    // Only whole tasks: threads appear in the file with their first sample.
    if (!perf_get(v, &r, sizeof(r)) || r.pid != r.tid)
        return;
    struct task_event event = { .task = r.pid, .time = r.time };
    if (v->head.type == PERF_RECORD_EXIT) {
        event.kind = TASK_ENDED;
        add(t, &event);
        return;
    }
    event.kind = TASK_BEGAN;
    event.other = r.parent_pid;
    add(t, &event);
    event.kind = TASK_FORKED;
    event.task = r.parent_pid;
    event.other = r.pid;
    add(t, &event);
}

static void take_comm(struct task_events *t, const struct perf_view *v)
{
    const char *name = perf_string(v, offsetof(struct perf_comm, name));
    struct perf_comm r;

    if (!(v->head.misc & PERF_MISC_COMM_EXEC) || !name ||
        !perf_get(v, &r, offsetof(struct perf_comm, name)))
        return;
    struct task_event event = { .kind = TASK_EXECED,
                                .task = r.pid,
                                .time = perf_time(v) };
    snprintf(event.name, sizeof(event.name), "%s", name);
    add(t, &event);
}

static int compare(const void *a, const void *b)
{
    const struct task_event *x = a, *y = b;

    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->other < y->other ? -1 : x->other > y->other;
}

void task_events_read(struct task_events *t, const struct profile *p)
{
    struct perf_layout layout;
    size_t size;
    const void *bytes = file_map(p->path, &size);

    *t = (struct task_events){ 0 };
    if (!bytes)
        fail(1, "%s: %s", p->path, strerror(errno));
    const char *problem = perf_layout(&layout, bytes, size);
    if (problem)
        fail(1, "%s: %s", p->path, problem);
    struct perf_walk walk = { .layout = &layout };
    struct perf_view v;
    while (perf_next(&walk, &v)) {
        if (v.head.type == PERF_RECORD_COMM)
            take_comm(t, &v);
        else if (v.head.type == PERF_RECORD_FORK ||
                 v.head.type == PERF_RECORD_EXIT)
            take_task(t, &v);
    }
    file_unmap(bytes, size);
    if (t->count > 0)
        qsort(t->list, t->count, sizeof(*t->list), compare);
}

void task_events_free(struct task_events *t)
{
    free(t->list);
    *t = (struct task_events){ 0 };
}

size_t task_events_of(const struct task_events *t, uint32_t task)
{
    size_t low = 0, high = t->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->list[middle].task < task)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
