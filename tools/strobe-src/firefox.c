// Firefox Profiler's processed profile format (github.com/firefox-devtools/
// profiler, docs-developer/CHANGELOG-formats.md, version 57): a track for each
// thread and for each idle CPU, with its samples sorted by time. The track of a
// task's first thread also has markers for the task's events. Times count from
// the start of the machine.
#include "by_thread.h"
#include "firefox_tables.h"
#include "task_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1e6
#define INSTANT 0 // a marker's phase
#define IDLE_PROCESS "idle"

struct firefox {
    struct export *e;
    struct firefox_tables tables;
    struct task_events events;
    bool timed; // samples are taken by time
    bool any;   // a track was written
};

// A thread's samples and, for a task's first thread, the task's events.
struct track {
    const struct timed_sample *samples;
    size_t count;
    uint32_t task, thread;
    const struct task_event *events;
    size_t event_count;
    bool idle, first; // of its process
};

static void put_string(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\":", key);
    json_string(out, text, strlen(text));
}

static void put_time(FILE *out, uint64_t ns)
{
    fprintf(out, "%.6f", ns / NS_PER_MS);
}

// --- samples ----------------------------------------------------------------

static void put_stack(FILE *out, int64_t stack)
{
    if (stack == FIREFOX_NO_STACK)
        fputs("null", out);
    else
        fprintf(out, "%" PRId64, stack);
}

// CPU time since the previous sample, which is the height in the timeline.
static void put_cpu_time(const struct firefox *f, const struct track *t)
{
    fputs("],\n\"threadCPUDelta\":[", f->e->out);
    for (size_t i = 0; i < t->count; i++)
        fprintf(f->e->out, "%s%" PRIu64, i > 0 ? "," : "",
                t->idle ? 0 : t->samples[i].period);
}

// Time in ms. Of other events their number: Firefox has no unit for them.
static void put_weights(const struct firefox *f, const struct track *t)
{
    fputs("],\n\"weight\":[", f->e->out);
    for (size_t i = 0; i < t->count; i++) {
        fputs(i > 0 ? "," : "", f->e->out);
        if (f->timed)
            put_time(f->e->out, t->samples[i].period);
        else
            fprintf(f->e->out, "%" PRIu64, t->samples[i].period);
    }
    fprintf(f->e->out, "],\"weightType\":\"%s\"",
            f->timed ? "tracing-ms" : "samples");
}

static void put_samples(struct firefox *f, const struct track *t)
{
    FILE *out = f->e->out;

    fputs(",\n\"samples\":{\"stack\":[", out);
    for (size_t i = 0; i < t->count; i++) {
        fputs(i > 0 ? "," : "", out);
        put_stack(out, firefox_stack(&f->tables, t->samples[i].chain));
    }
    fputs("],\n\"time\":[", out);
    for (size_t i = 0; i < t->count; i++) {
        fputs(i > 0 ? "," : "", out);
        put_time(out, t->samples[i].time);
    }
    if (f->timed)
        put_cpu_time(f, t);
    put_weights(f, t);
    fprintf(out, ",\"length\":%zu}", t->count);
}

// --- markers ----------------------------------------------------------------

static const char *const marker_names[] = {
    [TASK_FORKED] = "fork", [TASK_EXECED] = "exec", [TASK_ENDED] = "exit"
};

static bool is_marker(const struct task_event *event)
{
    return event->kind != TASK_BEGAN;
}

static void put_marker_data(FILE *out, const struct task_event *event)
{
    fprintf(out, "{\"type\":\"%s\"", marker_names[event->kind]);
    if (event->kind == TASK_FORKED)
        fprintf(out, ",\"child\":\"%u\"", event->other);
    if (event->kind == TASK_EXECED) {
        fputc(',', out);
        put_string(out, "program", event->name);
    }
    fputc('}', out);
}

enum marker_column { MARKER_DATA, MARKER_NAME, MARKER_START, MARKER_SAME };

static void put_marker(struct firefox *f, const struct task_event *event,
                       enum marker_column column, const char *same)
{
    FILE *out = f->e->out;

    if (column == MARKER_DATA)
        put_marker_data(out, event);
    else if (column == MARKER_NAME)
        fprintf(out, "%u",
                firefox_string(&f->tables, marker_names[event->kind]));
    else if (column == MARKER_START)
        put_time(out, event->time);
    else
        fputs(same, out);
}

static void put_marker_column(struct firefox *f, const struct track *t,
                              const char *name, enum marker_column column,
                              const char *same)
{
    const char *comma = "";

    fprintf(f->e->out, "\"%s\":[", name);
    for (size_t i = 0; i < t->event_count; i++) {
        if (!is_marker(&t->events[i]))
            continue;
        fputs(comma, f->e->out);
        put_marker(f, &t->events[i], column, same);
        comma = ",";
    }
    fputs("],", f->e->out);
}

static void put_markers(struct firefox *f, const struct track *t)
{
    char phase[] = { '0' + INSTANT, '\0' };
    char category[] = { '0' + CATEGORY_OTHER, '\0' };
    uint32_t count = 0;

    for (size_t i = 0; i < t->event_count; i++)
        count += is_marker(&t->events[i]);
    fputs(",\n\"markers\":{", f->e->out);
    put_marker_column(f, t, "data", MARKER_DATA, NULL);
    put_marker_column(f, t, "name", MARKER_NAME, NULL);
    put_marker_column(f, t, "startTime", MARKER_START, NULL);
    put_marker_column(f, t, "endTime", MARKER_SAME, "null");
    put_marker_column(f, t, "phase", MARKER_SAME, phase);
    put_marker_column(f, t, "category", MARKER_SAME, category);
    fprintf(f->e->out, "\"length\":%u}", count);
}

// --- a track ----------------------------------------------------------------

// The event at which the task began or ended; NULL: not in the recording.
static const struct task_event *event_of(const struct firefox *f, uint32_t task,
                                         enum task_event_kind kind)
{
    const struct task_events *all = &f->events;

    for (size_t i = task_events_of(all, task);
         i < all->count && all->list[i].task == task; i++) {
        if (all->list[i].kind == kind)
            return &all->list[i];
    }
    return NULL;
}

// The end of the thread's track. Samples of the task may follow its end event,
// while the kernel releases its memory.
static uint64_t last_time(const struct track *t, const struct task_event *ended)
{
    uint64_t sampled = t->count ? t->samples[t->count - 1].time : 0;

    return sampled > ended->time ? sampled : ended->time;
}

static void put_lifetime(const struct firefox *f, const struct track *t)
{
    FILE *out = f->e->out;
    const struct task_event *began = event_of(f, t->task, TASK_BEGAN);
    const struct task_event *ended = event_of(f, t->task, TASK_ENDED);

    for (int thread = 0; thread < 2; thread++) {
        fprintf(out,
                ",\"%s\":", thread ? "registerTime" : "processStartupTime");
        put_time(out, began != NULL && !t->idle ? began->time : 0);
        fprintf(out,
                ",\"%s\":", thread ? "unregisterTime" : "processShutdownTime");
        if (ended && !t->idle)
            put_time(out, last_time(t, ended));
        else
            fputs("null", out);
    }
}

static void put_names(const struct firefox *f, const struct track *t)
{
    const struct profile *p = f->e->profile;
    const char *program = samples_thread_name(&p->samples, t->task, t->task);
    char name[64], process[64];

    snprintf(process, sizeof(process), "%s", t->idle ? IDLE_PROCESS : program);
    if (t->idle)
        snprintf(name, sizeof(name), "idle CPU %u", t->samples->cpu);
    else
        snprintf(name, sizeof(name), "%s",
                 samples_thread_name(&p->samples, t->task, t->thread));
    put_string(f->e->out, "name", printable(name));
    fputc(',', f->e->out);
    put_string(f->e->out, "processName", printable(process));
    fputc(',', f->e->out);
    if (t->idle)
        fprintf(f->e->out, "\"pid\":\"%s\",\"tid\":\"%s\"", IDLE_PROCESS, name);
    else
        fprintf(f->e->out, "\"pid\":\"%u\",\"tid\":%u", t->task, t->thread);
}

static void put_track(struct firefox *f, const struct track *t)
{
    FILE *out = f->e->out;

    fputs(f->any ? ",\n{" : "\n{", out);
    f->any = true;
    put_names(f, t);
    fprintf(out,
            ",\"processType\":\"default\",\"isMainThread\":%s,"
            "\"showMarkersInTimeline\":true,\"pausedRanges\":[]",
            t->first ? "true" : "false");
    put_lifetime(f, t);
    firefox_tables_begin(&f->tables, t->idle);
    put_samples(f, t);
    put_markers(f, t);
    firefox_tables_write(&f->tables, out);
    fputc('}', out);
}

// --- all tracks -------------------------------------------------------------

static size_t thread_end(const struct timed_sample *list, size_t count,
                         size_t from)
{
    size_t to = from + 1;

    while (to < count && same_thread(&list[from], &list[to]))
        to++;
    return to;
}

// Writes the tracks of a task's threads, whose samples begin at `*at`, and
// advances `*at`. The first thread has a track even without samples.
static void put_task(struct firefox *f, const struct timed_sample *list,
                     size_t count, size_t *at, uint32_t task)
{
    size_t from = task_events_of(&f->events, task), end = from;
    struct track first = {
        .samples = &list[*at], .task = task, .thread = task, .first = true
    };

    while (end < f->events.count && f->events.list[end].task == task)
        end++;
    first.events = &f->events.list[from];
    first.event_count = end - from;
    if (*at < count && list[*at].task == task && list[*at].thread == task) {
        size_t to = thread_end(list, count, *at);
        first.count = to - *at;
        *at = to;
    }
    put_track(f, &first);
    while (*at < count && list[*at].task == task) {
        size_t to = thread_end(list, count, *at);
        put_track(f, &(struct track){ .samples = &list[*at],
                                      .count = to - *at,
                                      .task = task,
                                      .thread = list[*at].thread });
        *at = to;
    }
}

static void put_threads(struct firefox *f, const struct timed_sample *list,
                        size_t count)
{
    const struct view_filter *filter = f->e->filter;
    size_t at = 0, event = 0, busy = 0;

    while (busy < count && !sample_is_idle(&list[busy]))
        busy++;
    while (at < busy || event < f->events.count) {
        uint32_t task = at < busy ? list[at].task : UINT32_MAX;
        if (event < f->events.count && f->events.list[event].task < task)
            task = f->events.list[event].task;
        if (!filter->by_task || filter->task == task)
            put_task(f, list, busy, &at, task);
        while (event < f->events.count && f->events.list[event].task == task)
            event++;
    }
}

static void put_idle(struct firefox *f, const struct timed_sample *list,
                     size_t count)
{
    size_t from = 0;

    while (from < count && !sample_is_idle(&list[from]))
        from++;
    for (size_t at = from, to; at < count; at = to) {
        to = thread_end(list, count, at);
        put_track(f, &(struct track){ .samples = &list[at],
                                      .count = to - at,
                                      .idle = true,
                                      .first = at == from });
    }
}

// --- the file -------------------------------------------------------------

void export_firefox(struct export *e)
{
    struct firefox f = { .e = e, .timed = frame_is_timed(e, 0) };
    size_t count;
    struct timed_sample *list = samples_by_thread(e, &count);

    task_events_read(&f.events, e->profile);
    firefox_tables_init(&f.tables, e);
    firefox_meta_write(e);
    fputs(",\n\"threads\":[", e->out);
    put_threads(&f, list, count);
    put_idle(&f, list, count);
    fputc(']', e->out);
    firefox_shared_write(&f.tables, e->out);
    fputs("}\n", e->out);
    firefox_tables_free(&f.tables);
    task_events_free(&f.events);
    free(list);
}
