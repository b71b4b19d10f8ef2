// Reports of the whole system: the proportions of its modes, the time of all
// code, and a list for each program, with bars (after sprofalyze: R. Meurs,
// Building Performance Measurement Tools for the MINIX 3 Operating System,
// appendix C).
#include "sprofile.h"

#include "user/libprofile/shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE 79
#define BAR 30
#define NAME_WIDTH 38

// Tasks that ran the same program under the same name.
struct group {
    uint32_t image;
    char name[16];
    uint64_t samples, period;
};

struct groups {
    struct event *event;
    struct group *list;
    uint32_t count, room;
    uint32_t wanted; // the group that the filter selects
};

// Returns the group of a count, adding it if needed. Ends the program with a
// message when out of memory.
static uint32_t group_of(struct groups *g, const struct sample_count *c)
{
    const char *name = programs_name(&g->event->samples.programs, c->program);
    uint32_t i = 0;

    while (i < g->count &&
           (g->list[i].image != c->image || strcmp(g->list[i].name, name) != 0))
        i++;
    if (i < g->count)
        return i;
    if (g->count == g->room) {
        void *list = realloc(g->list, (g->room * 2 + 16) * sizeof(*g->list));
        if (!list)
            fail(1, "not enough memory for the report");
        g->list = list;
        g->room = g->room * 2 + 16;
    }
    g->list[i] = (struct group){ .image = c->image };
    snprintf(g->list[i].name, sizeof(g->list[i].name), "%s", name);
    g->count++;
    return i;
}

static bool in_group(void *arg, const struct sample_count *c)
{
    struct groups *g = arg;

    return c->mode != MODE_IDLE && c->mode != MODE_IRQ &&
           group_of(g, c) == g->wanted;
}

static int by_samples(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    if (x->period != y->period)
        return x->period < y->period ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void find_groups(struct groups *g, struct event *e)
{
    *g = (struct groups){ .event = e };
    for (uint32_t i = 0; i < e->samples.count; i++) {
        const struct sample_count *c = &e->samples.counts[i];
        if (c->mode == MODE_IDLE || c->mode == MODE_IRQ)
            continue;
        uint32_t n = group_of(g, c); // may reallocate the list
        g->list[n].samples += c->samples;
        g->list[n].period += c->period;
    }
    if (g->count > 0)
        qsort(g->list, g->count, sizeof(*g->list), by_samples);
}

// --- lines ------------------------------------------------------------------

static void rule(void)
{
    for (int i = 0; i < LINE; i++)
        putchar('-');
    putchar('\n');
}

static void heading(const char *what, const char *figures)
{
    rule();
    printf("%-*s%*s\n", LINE - 30, what, 30, figures);
    rule();
}

static void bar_line(const char *name, uint64_t part, uint64_t most,
                     uint64_t whole)
{
    char bar[BAR + 1];
    unsigned stars = most > 0 ? (part * BAR + most / 2) / most : 0;

    if (stars > BAR)
        stars = BAR;
    memset(bar, '*', stars);
    bar[stars] = '\0';
    printf("%*.*s %-*s %6.1f%%\n", NAME_WIDTH, NAME_WIDTH, name, BAR, bar,
           percent(part, whole));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static void place_name(char *out, size_t size, const struct event *e,
                       const struct view_row *row, bool with_image)
{
    const char *image = "";

    if (row->image < e->samples.images.count)
        image = base_name(e->samples.images.list[row->image].path);
    if (row->name && !with_image && row->image != IMAGE_KERNEL)
        snprintf(out, size, "%.*s", (int)row->name_size, row->name);
    else if (row->name)
        snprintf(out, size, "%s %.*s", image, (int)row->name_size, row->name);
    else if (row->address != 0)
        snprintf(out, size, "%s 0x%x", image, row->address);
    else
        snprintf(out, size, "%s [unknown]", image);
    printable(out);
}

// Prints the rows of a view with bars. Rows below the minimum, or beyond the
// limit, are folded into one.
static void list(const struct settings *s, const struct event *e,
                 const struct view *v, bool with_image)
{
    uint64_t most = v->count > 0 ? v->rows[0].self_period : 0, rest = 0;
    uint32_t shown = 0;
    char name[256];

    for (uint32_t i = 0; i < v->count; i++) {
        const struct view_row *row = &v->rows[i];
        bool small = percent(row->self_period, v->period) < s->min_percent;
        if (small || (s->rows != 0 && shown == s->rows)) {
            rest += row->self_period;
            continue;
        }
        place_name(name, sizeof(name), e, row, with_image);
        bar_line(name, row->self_period, most, v->period);
        shown++;
    }
    if (rest > 0) {
        snprintf(name, sizeof(name), "(the rest, <%.1f%% or beyond %u rows)",
                 s->min_percent, s->rows);
        bar_line(s->rows != 0 ? name : "(the rest)", rest, most, v->period);
    }
}

// --- the report -------------------------------------------------------------

static void proportion(const char *what, uint64_t period, const struct view *of,
                       bool timed)
{
    if (timed)
        printf("%24s: %10.3f ms", what, period / 1e6);
    else
        printf("%24s: %10" PRIu64, what, period);
    printf(" (%3.0f%%)\n", percent(period, of->period));
}

static double share_of_mode(const struct view *all, unsigned mode)
{
    return percent(all->mode_periods[mode], all->period);
}

// Prints the time of each mode, or how many events, and its share.
static void proportions(const struct sprofile_info *i, const struct view *all)
{
    static const char *const names[] = { [MODE_USER] = "User",
                                         [MODE_KERNEL] = "System",
                                         [MODE_IRQ] = "Interrupt",
                                         [MODE_IDLE] = "Idle" };
    bool timed = i->event[0] == '\0';

    for (unsigned m = 0; m < MODES; m++)
        proportion(names[m], all->mode_periods[m], all, timed);
    proportion("Total", all->period, all, timed);
    putchar('\n');
}

static void make(struct view *v, struct event *e,
                 const struct view_filter *filter)
{
    shares_even(&e->samples, 0, &e->info);
    if (view_make(v, &e->samples, BY_SYMBOL, filter) < 0)
        fail(1, "not enough memory for the report");
}

static void all_code(const struct settings *s, struct event *e,
                     const struct view *v)
{
    char figures[64];

    snprintf(figures, sizeof(figures), "%" PRIu64 " samples", v->samples);
    heading("All code but idle", figures);
    list(s, e, v, true);
    putchar('\n');
}

static void each_group(const struct settings *s, struct event *e,
                       uint64_t whole)
{
    struct groups g;
    char what[128], figures[64];

    find_groups(&g, e);
    for (uint32_t i = 0; i < g.count; i++) {
        struct view_filter filter = { .wanted = in_group, .arg = &g };
        struct view v;
        if (percent(g.list[i].period, whole) < s->min_percent)
            continue;
        g.wanted = i;
        make(&v, e, &filter);
        snprintf(what, sizeof(what), "%s %s", g.list[i].name,
                 e->samples.images.list[g.list[i].image].path);
        snprintf(figures, sizeof(figures), "%.1f%% of all but idle",
                 percent(g.list[i].period, whole));
        heading(printable(what), figures);
        list(s, e, &v, false);
        putchar('\n');
        view_free(&v);
    }
    free(g.list);
}

static void tree_name(char *out, size_t size, const struct view_row *row,
                      void *arg)
{
    place_name(out, size, arg, row, true);
}

// Prints the tree of calls of all programs and the kernel.
static void calls(const struct settings *s, struct event *e,
                  const struct view *v, const struct view_filter *filter)
{
    struct tree t;

    if (tree_make(&t, v, &e->samples, filter, s->inverted) < 0)
        fail(1, "not enough memory for the tree");
    tree_print(&t, v, s->inverted, &s->tree_limit,
               &(struct naming){ tree_name, e });
    tree_free(&t);
}

static void each_cpu(const struct settings *s, struct event *e)
{
    char what[32], figures[64];

    for (uint32_t cpu = 0; cpu < e->info.cpus; cpu++) {
        struct view_filter filter = { .by_cpu = true,
                                      .cpu = cpu,
                                      .modes = 1u << MODE_IDLE };
        struct view v;
        make(&v, e, &filter);
        snprintf(what, sizeof(what), "CPU %u", cpu);
        snprintf(figures, sizeof(figures), "%" PRIu64 " samples", v.samples);
        heading(what, figures);
        list(s, e, &v, true);
        putchar('\n');
        view_free(&v);
    }
}

static void report_event(const struct settings *s, struct event *e,
                         const struct events *all)
{
    static const struct view_filter everything;
    struct view_filter busy = { .modes = 1u << MODE_IDLE };
    struct view v, all_modes;

    make(&all_modes, e, &everything);
    make(&v, e, &busy);
    header_complain(stderr, "sprofile", &e->samples);
    printf("System profile, %.3f s, without sprofile itself\n",
           e->info.elapsed_ns / 1e9);
    header_print_event(stdout, event_name(e), e - all->list, all->count);
    header_print(stdout, &e->info, &e->asked, &e->samples, 0, v.unknown);
    putchar('\n');
    proportions(&e->info, &all_modes);
    if (s->tree)
        calls(s, e, &v, &busy);
    else
        all_code(s, e, &v);
    if (s->per_cpu)
        each_cpu(s, e);
    else if (!s->tree)
        each_group(s, e, v.period);
    view_free(&v);
    view_free(&all_modes);
}

void report(const struct settings *s, struct result *r)
{
    for (uint32_t i = 0; i < r->events.count; i++)
        report_event(s, &r->events.list[i], &r->events);
}

// --- live -------------------------------------------------------------------

#define HOME "\33[H"
#define CLEAR_LINE "\33[K\n"
#define CLEAR_REST "\33[J"

void show_top(const struct settings *s, struct result *r)
{
    static const struct view_filter all;
    struct event *e = &r->events.list[0];
    struct view_filter busy = { .modes = 1u << MODE_IDLE };
    struct view v, whole;
    char name[256];

    make(&whole, e, &all);
    make(&v, e, &busy);
    printf(HOME "%s", e->info.source);
    if (e->info.rate_hz != 0)
        printf(" at %u Hz", e->info.rate_hz);
    else
        printf(", every %" PRIu64 " %s", e->info.period, e->info.event);
    printf(", %u CPUs: user %.0f%%, system %.0f%%, irq %.0f%%, "
           "idle %.0f%%" CLEAR_LINE,
           e->info.cpus, share_of_mode(&whole, MODE_USER),
           share_of_mode(&whole, MODE_KERNEL), share_of_mode(&whole, MODE_IRQ),
           share_of_mode(&whole, MODE_IDLE));
    printf("%" PRIu64 " samples in %.1f s, %" PRIu64
           " lost in all" CLEAR_LINE CLEAR_LINE,
           whole.samples, (e->info.elapsed_ns - r->shown_ns) / 1e9,
           e->info.lost);
    r->shown_ns = e->info.elapsed_ns;
    for (uint32_t i = 0; i < v.count && i < s->rows && v.rows[i].self > 0;
         i++) {
        place_name(name, sizeof(name), e, &v.rows[i], true);
        printf("%6.2f%%  %.60s" CLEAR_LINE,
               percent(v.rows[i].self_period, v.period), name);
    }
    printf(CLEAR_REST);
    fflush(stdout);
    view_free(&v);
    view_free(&whole);
    samples_clear(&e->samples);
}

// --- JSON -------------------------------------------------------------------

static void json_programs(struct event *e)
{
    struct groups g;

    find_groups(&g, e);
    printf("  \"programs\": [");
    for (uint32_t n = 0; n < g.count; n++) {
        const char *path = e->samples.images.list[g.list[n].image].path;
        printf("%s\n    {\"name\": ", n > 0 ? "," : "");
        json_string(stdout, g.list[n].name, strlen(g.list[n].name));
        printf(", \"path\": ");
        json_string(stdout, path, strlen(path));
        printf(", \"samples\": %" PRIu64 ", \"period\": %" PRIu64 "}",
               g.list[n].samples, g.list[n].period);
    }
    printf("\n  ],\n");
    free(g.list);
}

static void json_row(const struct event *e, const struct view_row *row)
{
    const char *path = e->samples.images.list[row->image].path;

    printf("{\"image\": ");
    json_string(stdout, path, strlen(path));
    printf(", \"address\": %u, \"symbol\": ", row->address);
    if (row->name)
        json_string(stdout, row->name, row->name_size);
    else
        printf("null");
    printf(", \"samples\": %" PRIu64 ", \"total\": %" PRIu64
           ", \"period\": %" PRIu64 "}",
           row->self, row->total, row->self_period);
}

static void json_event(struct event *e)
{
    static const struct view_filter all;
    struct view v;

    make(&v, e, &all);
    printf("{\n");
    header_print_json(stdout, &e->info, &e->asked, &e->samples, v.unknown);
    json_programs(e);
    printf("  \"rows\": [");
    for (uint32_t n = 0; n < v.count; n++) {
        printf("%s\n    ", n > 0 ? "," : "");
        json_row(e, &v.rows[n]);
    }
    printf("\n  ]\n}");
    view_free(&v);
}

// With several events, prints a list with one object for each event.
void report_json(struct result *r)
{
    bool several = r->events.count > 1;

    fputs(several ? "{\n  \"events\": [\n" : "", stdout);
    for (uint32_t i = 0; i < r->events.count; i++) {
        fputs(i > 0 ? ",\n" : "", stdout);
        json_event(&r->events.list[i]);
    }
    fputs(several ? "\n]}\n" : "\n", stdout);
}
