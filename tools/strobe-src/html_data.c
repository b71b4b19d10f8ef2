// The data of the page (html_data.h). The samples are sorted twice. First by
// task, CPU, mode and event: each distinct combination gets a number, `origin`.
// Then by bin, node and `origin`: samples that the page counts together are
// adjacent.
#include "html_data.h"

#include "header_lines.h"
#include "timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROOT_SYMBOL 0u

// A sample, as the page counts it.
struct entry {
    const char *program; // name of the task at that time
    uint32_t task, cpu, mode, event;
    uint32_t bin, node, origin; // origin: set by number_origin
    uint64_t period;            // ns, or events
};

struct page {
    struct profile *profile;
    struct timeline timeline;
    struct view view;    // by symbol: its rows are the symbols
    struct chains paths; // of rows: the nodes of the page
    struct entry *entries;
};

static void *get_memory(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);

    if (!memory)
        fail(1, "not enough memory for the page");
    return memory;
}

// --- nodes ------------------------------------------------------------------

// Converts chains of addresses to paths of symbols. Returns the path's node of
// each chain node.
static uint32_t *make_paths(struct page *g)
{
    const struct chains *chains = &g->profile->samples.chains;
    uint32_t *node_of = get_memory(chains->count * sizeof(*node_of));

    if (chains_init(&g->paths, chains->max) < 0)
        fail(1, "not enough memory for the page");
    node_of[CHAIN_ROOT] = CHAIN_ROOT;
    // A node's parent precedes it.
    for (uint32_t i = 1; i < chains->count; i++)
        node_of[i] = chains_add(&g->paths, node_of[chains->nodes[i].parent],
                                (struct place){ 0, g->view.row_of[i] });
    return node_of;
}

static void write_nodes(FILE *out, const struct page *g)
{
    fputs(",\"nodes\":{\"parent\":[0", out);
    for (uint32_t i = 1; i < g->paths.count; i++)
        fprintf(out, ",%u", g->paths.nodes[i].parent);
    fprintf(out, "],\"symbol\":[%u", ROOT_SYMBOL);
    for (uint32_t i = 1; i < g->paths.count; i++)
        fprintf(out, ",%u", g->paths.nodes[i].place.address);
    fputs("]}", out);
}

// --- symbols ----------------------------------------------------------------

static void write_symbol(FILE *out, const struct view_row *row)
{
    char address[sizeof("0x12345678")];

    if (row->name) {
        json_string(out, row->name, row->name_size);
    } else if (row->address == 0) {
        fputs("\"[unknown]\"", out);
    } else {
        snprintf(address, sizeof(address), "0x%x", row->address);
        json_string(out, address, strlen(address));
    }
}

static void write_symbols(FILE *out, const struct page *g)
{
    const struct images *images = &g->profile->samples.images;
    const struct inlines *inlines = &g->profile->inlines;
    const struct view *v = &g->view;

    fputs(",\"images\":[", out);
    uint32_t count = profile_images(g->profile);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", out);
        json_string(out, images->list[i].path, strlen(images->list[i].path));
    }
    fputs("],\"symbols\":{\"name\":[", out);
    for (uint32_t i = 0; i < v->count; i++) {
        fputs(i > 0 ? "," : "", out);
        write_symbol(out, &v->rows[i]);
    }
    fputs("],\"image\":[", out);
    for (uint32_t i = 0; i < v->count; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "",
                inlines_image(inlines, v->rows[i].image));
    fputs("]}", out);
}

// --- samples ----------------------------------------------------------------

static void make_entries(struct page *g, const uint32_t *node_of)
{
    struct profile *p = g->profile;

    g->entries = get_memory(p->count * sizeof(*g->entries));
    for (size_t i = 0; i < p->count; i++) {
        const struct timed_sample *s = &p->list[i];
        g->entries[i] = (struct entry){
            .program = programs_name(&p->samples.programs, s->program),
            .task = s->task,
            .cpu = s->cpu,
            .mode = s->mode,
            .event = s->event,
            .bin = timeline_bin(&g->timeline, s->time),
            .node = node_of[s->chain],
            .period = s->period,
        };
    }
}

// --- origins --------------------------------------------------------------

#define COMPARE(a, b, field)      \
    if ((a)->field != (b)->field) \
    return (a)->field < (b)->field ? -1 : 1

// The page shows a task that executes another program as another task.
static int compare_tasks(const struct entry *a, const struct entry *b)
{
    COMPARE(a, b, task);
    return a->program == b->program ? 0 : strcmp(a->program, b->program);
}

static int compare_who(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int tasks = compare_tasks(a, b);

    if (tasks != 0)
        return tasks;
    COMPARE(a, b, cpu);
    COMPARE(a, b, mode);
    COMPARE(a, b, event);
    return 0;
}

static void write_tasks(FILE *out, const struct page *g)
{
    const struct entry *list = g->entries;

    fputs(",\"tasks\":[", out);
    for (size_t i = 0; i < g->profile->count; i++) {
        if (i > 0 && compare_tasks(&list[i], &list[i - 1]) == 0)
            continue;
        fprintf(out, "%s[%u,", i > 0 ? "," : "", list[i].task);
        json_string(out, list[i].program, strlen(list[i].program));
        fputc(']', out);
    }
    fputc(']', out);
}

// Numbers the entries, which are sorted by compare_who, and stores the first
// entry of each number. Returns the count of numbers.
static uint32_t number_origin(struct page *g, struct entry *firsts)
{
    uint32_t count = 0, task = 0;

    for (size_t i = 0; i < g->profile->count; i++) {
        struct entry *e = &g->entries[i], *before = e - 1;
        task += i > 0 && compare_tasks(e, before) != 0;
        if (i == 0 || compare_who(e, before) != 0) {
            firsts[count] = *e;
            firsts[count++].task = task;
        }
        e->origin = count - 1;
    }
    return count;
}

static void write_who(FILE *out, struct page *g)
{
    struct entry *list = get_memory(g->profile->count * sizeof(*list));
    uint32_t count = number_origin(g, list);

    fputs(",\"origin\":{\"task\":[", out);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "", list[i].task);
    fputs("],\"cpu\":[", out);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "", list[i].cpu);
    fputs("],\"mode\":[", out);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "", list[i].mode);
    fputs("],\"event\":[", out);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "", list[i].event);
    fputs("]}", out);
    free(list);
}

// --- bins -------------------------------------------------------------------

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;

    COMPARE(a, b, bin);
    COMPARE(a, b, node);
    COMPARE(a, b, origin);
    return 0;
}

static void write_bins(FILE *out, const struct page *g)
{
    size_t count = g->profile->count, at = 0;

    fputs(",\"bins\":[", out);
    for (uint32_t bin = 0; bin < g->timeline.bins; bin++) {
        const char *comma = "";
        fputs(bin > 0 ? ",[" : "[", out);
        while (at < count && g->entries[at].bin == bin) {
            const struct entry *e = &g->entries[at];
            size_t end = at;
            uint64_t period = 0;
            while (end < count && compare_entries(e, &g->entries[end]) == 0)
                period += g->entries[end++].period;
            fprintf(out, "%s%u,%u,%zu,%" PRIu64, comma, e->node, e->origin,
                    end - at, period);
            comma = ",";
            at = end;
        }
        fputc(']', out);
    }
    fputc(']', out);
}

// --- head -------------------------------------------------------------------

struct list_of {
    FILE *out;
    const char *comma;
};

static void write_fact(void *arg, const char *name, size_t size,
                       const char *value)
{
    struct list_of *list = arg;

    fprintf(list->out, "%s[", list->comma);
    json_string(list->out, name, size);
    fputc(',', list->out);
    json_string(list->out, value, strlen(value));
    fputc(']', list->out);
    list->comma = ",";
}

static void write_totals(FILE *out, const struct page *g, uint32_t event)
{
    uint64_t period = 0, samples = 0;

    for (size_t i = 0; i < g->profile->count; i++) {
        const struct entry *e = &g->entries[i];
        period += e->event == event ? e->period : 0;
        samples += e->event == event;
    }
    fprintf(out, ",\"total\":%" PRIu64 ",\"samples\":", period);
    if (g->profile->traced)
        fputs("null", out);
    else
        fprintf(out, "%" PRIu64, samples);
}

static void write_event(FILE *out, const struct page *g, uint32_t event)
{
    const struct view_filter only = { .by_event = true, .event = event };
    const struct perf_file *f = &g->profile->files[event];
    const char *name = g->profile->events.name[f->event];
    const char *unit = f->info.event[0] != '\0' ? f->info.event : "ns";
    struct view v;

    fprintf(out, "%s{\"name\":", event > 0 ? "," : "");
    json_string(out, name, strlen(name));
    fputs(",\"unit\":", out);
    json_string(out, unit, strlen(unit));
    write_totals(out, g, event);
    profile_view(&v, g->profile, BY_SYMBOL, &only);
    fputs(",\"facts\":[", out);
    struct list_of list = { out, "" };
    header_lines(g->profile, f, &v, write_fact, &list);
    fputs("]}", out);
    view_free(&v);
}

static uint32_t count_cpus(const struct profile *p)
{
    uint32_t cpus = 1;

    for (size_t i = 0; i < p->count; i++)
        cpus = p->list[i].cpu >= cpus ? p->list[i].cpu + 1u : cpus;
    return cpus;
}

// The period of the first event sampled by time at a fixed interval, or 0.
static uint64_t tick_of(const struct profile *p)
{
    for (uint32_t i = 0; i < p->file_count; i++) {
        const struct sprofile_info *info = &p->files[i].info;
        if (info->event[0] == '\0' && !info->random)
            return info->period;
    }
    return 0;
}

static void write_head(FILE *out, const struct page *g)
{
    const struct profile *p = g->profile;
    const char *title = profile_title(p);

    fputs("{\"title\":", out);
    json_string(out, title, strlen(title));
    fputs(",\"events\":[", out);
    for (uint32_t i = 0; i < p->file_count; i++)
        write_event(out, g, i);
    fprintf(out, "],\"seconds\":%.6f,\"cpus\":%u",
            timeline_seconds(&g->timeline), count_cpus(p));
}

// --- the whole object --------------------------------------------------------

void html_data(struct profile *p, FILE *out)
{
    const struct view_filter all = { 0 };
    struct page g = { .profile = p };

    profile_view(&g.view, p, BY_SYMBOL, &all);
    g.timeline = timeline_make(p->list, p->count, count_cpus(p) * p->file_count,
                               tick_of(p));
    uint32_t *node_of = make_paths(&g);
    make_entries(&g, node_of);
    write_head(out, &g);
    write_symbols(out, &g);
    write_nodes(out, &g);
    qsort(g.entries, p->count, sizeof(*g.entries), compare_who);
    write_tasks(out, &g);
    write_who(out, &g);
    qsort(g.entries, p->count, sizeof(*g.entries), compare_entries);
    write_bins(out, &g);
    fputc('}', out);
    free(node_of);
    free(g.entries);
    chains_free(&g.paths);
    view_free(&g.view);
}
