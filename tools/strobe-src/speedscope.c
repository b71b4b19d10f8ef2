// speedscope's file format (its file-format-spec.ts): a shared list of frames,
// and for each event a sampled profile for each thread and each idle CPU, with
// its samples sorted by time.
//
// Profiles of events sampled by time share one time axis, which begins with the
// earliest sample. An empty stack fills time without samples.
#include "by_thread.h"
#include "export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 512
#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

static void put_string(FILE *out, const char *text)
{
    json_string(out, text, strlen(text));
}

// Frame 0 is idle; row n of the view is frame n + 1.
static void put_frames(const struct export *e)
{
    char name[NAME_SIZE];

    fprintf(e->out, "{\"name\":\"%s\"}", IDLE_FRAME);
    for (uint32_t row = 0; row < e->view->count; row++) {
        frame_name(name, sizeof(name), e, row);
        fputs(",\n{\"name\":", e->out);
        put_string(e->out, name);
        fputs(",\"file\":", e->out);
        put_string(e->out, frame_file(e, row));
        fputc('}', e->out);
    }
}

static bool put_callers(const struct export *e, uint32_t chain, bool more)
{
    if (chain == CHAIN_ROOT)
        return more;
    more = put_callers(e, e->profile->samples.chains.nodes[chain].parent, more);
    fprintf(e->out, "%s%u", more ? "," : "", e->view->row_of[chain] + 1);
    return true;
}

static void put_stack(const struct export *e, const struct timed_sample *s)
{
    fputs(sample_is_idle(s) ? "[0" : "[", e->out);
    put_callers(e, s->chain, sample_is_idle(s));
    fputc(']', e->out);
}

static void put_title(const struct export *e, const struct timed_sample *s)
{
    const struct perf_events *events = &e->profile->events;
    const char *event = events->name[e->profile->files[s->event].event];
    char title[NAME_SIZE];
    int n;

    if (sample_is_idle(s))
        n = snprintf(title, sizeof(title), "idle CPU %u", s->cpu);
    else
        n = snprintf(
            title, sizeof(title), "%s (task %u, thread %u)",
            samples_thread_name(&e->profile->samples, s->task, s->thread),
            s->task, s->thread);
    if (events->count > 1)
        snprintf(title + n, sizeof(title) - n, ", %s", event);
    put_string(e->out, title);
}

static uint64_t begin_of(const struct timed_sample *s)
{
    return s->time > s->period ? s->time - s->period : 0;
}

// Returns the earliest begin of a sample of an event sampled by time.
static uint64_t origin_of(const struct export *e)
{
    const struct profile *p = e->profile;
    uint64_t origin = UINT64_MAX;

    for (size_t i = 0; i < p->count; i++) {
        if (frame_is_timed(e, p->list[i].event) &&
            begin_of(&p->list[i]) < origin)
            origin = begin_of(&p->list[i]);
    }
    return origin;
}

// A sample covers the period before its time. Advances `*at` over the sample
// and returns the gap before it. A gap shorter than the period is jitter, as
// intervals are random and interrupts late: it is 0 here and carried over.
static uint64_t gap_before(const struct timed_sample *s, bool timed,
                           uint64_t *at)
{
    uint64_t gap = timed && begin_of(s) > *at ? begin_of(s) - *at : 0;

    if (gap < s->period)
        gap = 0;
    *at += gap + s->period;
    return gap;
}

static void put_profile(const struct export *e, const struct timed_sample *s,
                        size_t count, uint64_t origin)
{
    bool timed = frame_is_timed(e, s->event);
    uint64_t start = timed ? origin : 0, at = start;

    for (size_t i = 0; i < count; i++)
        gap_before(&s[i], timed, &at);
    fputs("{\"type\":\"sampled\",\"name\":", e->out);
    put_title(e, &s[count - 1]); // its last program
    fprintf(e->out,
            ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64
            ",\n\"samples\":[",
            timed ? "nanoseconds" : "none", at - start);
    at = start;
    for (size_t i = 0; i < count; i++) {
        bool gap = gap_before(&s[i], timed, &at) > 0;
        fprintf(e->out, "%s%s", i > 0 ? "," : "", gap ? "[]," : "");
        put_stack(e, &s[i]);
    }
    fputs("],\n\"weights\":[", e->out);
    at = start;
    for (size_t i = 0; i < count; i++) {
        uint64_t gap = gap_before(&s[i], timed, &at);
        fputs(i > 0 ? "," : "", e->out);
        if (gap > 0)
            fprintf(e->out, "%" PRIu64 ",", gap);
        fprintf(e->out, "%" PRIu64, s[i].period);
    }
    fputs("]}", e->out);
}

void export_speedscope(struct export *e)
{
    size_t count;
    struct timed_sample *list = samples_by_thread(e, &count);
    uint64_t origin = origin_of(e);

    fprintf(e->out,
            "{\"$schema\":\"%s\",\"exporter\":\"strobe\",\"name\":", SCHEMA);
    put_string(e->out, profile_title(e->profile));
    fputs(",\n\"shared\":{\"frames\":[\n", e->out);
    put_frames(e);
    fputs("\n]},\n\"profiles\":[\n", e->out);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count; to++) {
            if (!same_thread(&list[from], &list[to]))
                break;
        }
        fputs(from > 0 ? ",\n" : "", e->out);
        put_profile(e, &list[from], to - from, origin);
    }
    fputs("\n]}\n", e->out);
    free(list);
}
