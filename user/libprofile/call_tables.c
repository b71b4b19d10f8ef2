#include "call_tables.h"

#include "header.h"
#include "user/libread/sort.h"
#include "user/libstrobe/core_clock.h"
#include "user/libstrobe/strobe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TIME_SIZE (NUMBER_SIZE + 2)
#define NONE UINT32_MAX

// --- numbers ----------------------------------------------------------------

double call_ns(const struct call_printing *c, uint64_t cycles)
{
    return c->tsc_hz ? (double)cycles * 1e9 / (double)c->tsc_hz : 0;
}

// Three or four digits and the unit.
static const char *time_text(char out[TIME_SIZE], double ns)
{
    static const char *const units[] = { "ns", "us", "ms", "s" };
    unsigned unit = 0;

    while (ns >= 999.95 && unit < 3) {
        ns /= 1000;
        unit++;
    }
    unsigned digits = !unit ? 0 : ns < 9.995 ? 2 : 1;
    strcpy(put_fixed(out, ns, digits), units[unit]);
    return out;
}

static void add_time(struct table *t, const struct call_printing *c,
                     uint64_t cycles)
{
    char text[TIME_SIZE];

    table_add_text(t, cycles ? time_text(text, call_ns(c, cycles)) : "-");
}

static void add_count(struct table *t, uint64_t count)
{
    char text[NUMBER_SIZE];

    put_decimal(text, count);
    table_add_text(t, text);
}

static void *get_memory(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    if (!memory)
        fail(1, "not enough memory for the report");
    return memory;
}

// --- the header -------------------------------------------------------------

static void put_missing(const struct call_printing *c, uint64_t count,
                        const char *what)
{
    if (count)
        fprintf(c->out, "MISSING: %" PRIu64 " %s\n", count, what);
}

void call_print_header(const struct call_printing *c,
                       const struct calls_info *info)
{
    char text[TIME_SIZE];

    put_missing(c, info->overflow,
                "calls: there were more paths than entries (--entries)");
    put_missing(c, info->too_deep, "calls: nested too deeply (-D)");
    put_missing(c, info->no_frames,
                "times a thread ran untraced: no memory for its frames");
    fprintf(c->out, "Traced:  %u functions, %s", info->functions,
            time_text(text, call_ns(c, info->elapsed)));
    fprintf(c->out, " on %u CPU%s", info->cpus, info->cpus == 1 ? "" : "s");
    if (info->task)
        fprintf(c->out, ", only task %u", info->task);
    if (info->depth && info->depth < CALLS_DEPTH_MAX)
        fprintf(c->out, ", %u calls deep", info->depth);
    fprintf(c->out, "; %u of %u entries used\n", info->most, info->entries);
    if (info->mode == CALLS_PATHS)
        fprintf(c->out,
                "Tracing: %u + %u cycles of each call, in caller and function, "
                "are removed\n",
                info->outside_caller, info->outside_own);
    if (info->tsc_error_ppm > STROBE_TSC_KNOWN_PPM)
        fprintf(c->out, "Clock:   TSC %.3f GHz%s\n", info->tsc_hz / 1e9,
                core_clock_rate(info->tsc_error_ppm));
    fputc('\n', c->out);
}

// --- rows -------------------------------------------------------------------

// A row's place in the order: by key, the highest first, then by name if there
// is one, then the first one traced.
struct ranked {
    uint64_t key;
    const char *name;
    uint32_t index;
};

static bool by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->key != y->key)
        return x->key > y->key;
    int names = x->name ? strcmp(x->name, y->name) : 0;
    return names ? names < 0 : x->index < y->index;
}

static struct ranked rank(const struct call_printing *c, uint32_t index,
                          uint64_t time, uint64_t calls, uint32_t function)
{
    return (struct ranked){
        .key = c->sort == CALLS_BY_TIME    ? time
               : c->sort == CALLS_BY_CALLS ? calls
                                           : 0,
        .name = c->sort == CALLS_BY_CALLS || c->sort == CALLS_BY_NAME
                    ? c->name(c->arg, function)
                    : NULL,
        .index = index,
    };
}

static const struct table_column columns[] = {
    { "Calls", true },     { "Own", true },      { "Own%", true },
    { "Total", true },     { "Blocked", true },  { "Interr.", true },
    { "Tracing", true },   { "Shortest", true }, { "Longest", true },
    { "Function", false },
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

// All but the name. `all`: 100 %; roots have no share.
static void add_numbers(struct table *t, const struct call_printing *c,
                        const struct call_path *f, uint64_t all)
{
    bool returned = f->calls > f->open;
    char text[NUMBER_SIZE + 1] = "-";

    if (!call_is_root(f->function))
        strcpy(put_fixed(text, percent((double)f->own, (double)all), 2), "%");
    add_count(t, f->calls);
    add_time(t, c, f->own);
    table_add_text(t, text);
    add_time(t, c, f->total);
    add_time(t, c, f->blocked);
    add_time(t, c, f->interrupted);
    add_time(t, c, f->tracing);
    add_time(t, c, returned && f->shortest != UINT64_MAX ? f->shortest : 0);
    add_time(t, c, f->longest);
}

static void put_open(FILE *out, uint64_t open)
{
    if (open)
        fprintf(out, " (%" PRIu64 " not returned)", open);
}

// The last cell of a row is what is put into `out`, whose bytes are *text.
struct last_cell {
    FILE *out;
    char *text;
    size_t size;
};

static void open_cells(struct last_cell *l)
{
    l->text = NULL;
    l->out = open_memstream(&l->text, &l->size);
    if (!l->out)
        fail(1, "not enough memory for the report");
}

static void add_cell(struct table *t, struct last_cell *l, uint64_t open)
{
    put_open(l->out, open);
    fputc('\0', l->out);
    if (fflush(l->out) != 0)
        fail(1, "not enough memory for the report");
    table_add_text(t, l->text);
    rewind(l->out);
}

static void close_cells(struct last_cell *l)
{
    fclose(l->out);
    free(l->text);
}

static void put_rest(const struct call_printing *c, uint32_t shown,
                     uint32_t count, const char *what)
{
    if (shown < count)
        fprintf(c->out, "%u more %s (%s shows all)\n", count - shown, what,
                c->show_all);
}

static uint32_t limit(const struct call_printing *c, uint32_t count)
{
    return c->rows && c->rows < count ? c->rows : count;
}

// The own time of all functions.
static uint64_t all_time(const struct call_paths *p)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < p->count; i++)
        all += p->list[i].parent == i ? 0 : p->list[i].own;
    return all;
}

// What is outside of the functions.
static void put_roots(const struct call_printing *c, const struct call_paths *p)
{
    char own[TIME_SIZE], tracing[TIME_SIZE];

    for (uint32_t i = 0; i < p->count; i++) {
        const struct call_path *root = &p->list[i];
        if (root->parent == i && (root->own || root->tracing))
            fprintf(c->out, "%s: %s outside of these functions, %s tracing\n",
                    call_root_name(root->function),
                    time_text(own, call_ns(c, root->own)),
                    time_text(tracing, call_ns(c, root->tracing)));
    }
}

void call_print_functions(const struct call_printing *c,
                          const struct call_paths *p)
{
    struct table t;
    struct call_paths functions = call_functions(p);
    struct last_cell name;

    if (!functions.list)
        fail(1, "not enough memory for the report");
    struct ranked *order = get_memory(functions.count, sizeof(*order));
    uint64_t all = all_time(p);
    uint32_t count = 0;
    for (uint32_t i = 0; i < functions.count; i++) {
        const struct call_path *f = &functions.list[i];
        if (f->calls || f->open)
            order[count++] = rank(c, i, f->own, f->calls, f->function);
    }
    sort_first(order, count, sizeof(*order), limit(c, count), by_rank);
    table_init(&t, columns, COLUMNS);
    open_cells(&name);
    for (uint32_t i = 0; i < limit(c, count); i++) {
        const struct call_path *f = &functions.list[order[i].index];
        add_numbers(&t, c, f, all);
        fputs(c->name(c->arg, f->function), name.out);
        add_cell(&t, &name, f->open);
    }
    close_cells(&name);
    table_print(&t, c->out);
    put_rest(c, limit(c, count), count, "functions");
    put_roots(c, p);
    free(order);
    call_paths_free(&functions);
}

// --- paths ------------------------------------------------------------------

static uint32_t *all_paths(const struct call_paths *p)
{
    uint32_t *order = get_memory(p->count, sizeof(*order));

    for (uint32_t i = 0; i < p->count; i++)
        order[i] = i;
    return order;
}

// Puts the first `wanted` of these paths by rank in front.
static void order_by_rank(const struct call_printing *c,
                          const struct call_paths *p, uint32_t *order,
                          uint32_t count, uint32_t wanted, bool by_total)
{
    struct ranked *list = get_memory(count, sizeof(*list));

    for (uint32_t i = 0; i < count; i++) {
        const struct call_path *path = &p->list[order[i]];
        list[i] = rank(c, order[i], by_total ? path->total : path->own,
                       path->calls, path->function);
    }
    sort_first(list, count, sizeof(*list), wanted, by_rank);
    for (uint32_t i = 0; i < count; i++)
        order[i] = list[i].index;
    free(list);
}

uint32_t *call_paths_order(const struct call_printing *c,
                           const struct call_paths *p, bool by_total)
{
    uint32_t *flat = all_paths(p);
    uint32_t *first = get_memory(p->count + 1, sizeof(*first));
    uint32_t *next = get_memory(p->count, sizeof(*next));
    uint32_t top = NONE, n = 0;

    order_by_rank(c, p, flat, p->count, p->count, by_total);
    for (uint32_t i = 0; i < p->count; i++)
        first[i] = NONE;
    for (uint32_t i = p->count; i-- > 0;) { // the last first: it is prepended
        const struct call_path *path = &p->list[flat[i]];
        uint32_t *head = path->parent == flat[i] ? &top : &first[path->parent];
        next[flat[i]] = *head;
        *head = flat[i];
    }
    for (uint32_t at = top; at != NONE;) {
        flat[n++] = at;
        if (first[at] != NONE) {
            at = first[at];
            continue;
        }
        while (next[at] == NONE && p->list[at].parent != at)
            at = p->list[at].parent;
        at = next[at];
    }
    free(first);
    free(next);
    return flat;
}

void call_put_path(const struct call_printing *c, const struct call_paths *p,
                   uint32_t path)
{
    uint32_t *chain = get_memory(p->list[path].depth + 1, sizeof(*chain));
    uint32_t n = 0;

    for (uint32_t at = path;; at = p->list[at].parent) {
        chain[n++] = at;
        if (p->list[at].parent == at)
            break;
    }
    while (n-- > 0) {
        fputs(c->name(c->arg, p->list[chain[n]].function), c->out);
        if (n)
            fputc(';', c->out);
    }
    free(chain);
}

static void print_paths(const struct call_printing *c,
                        const struct call_paths *p, const uint32_t *order,
                        uint32_t count, bool full)
{
    struct table t;
    struct last_cell name;
    struct call_printing to = *c;
    uint64_t all = all_time(p);

    table_init(&t, columns, COLUMNS);
    open_cells(&name);
    to.out = name.out;
    for (uint32_t i = 0; i < limit(c, count); i++) {
        const struct call_path *path = &p->list[order[i]];
        add_numbers(&t, c, path, all);
        if (full) {
            call_put_path(&to, p, order[i]);
        } else {
            put_blanks(name.out, (int)(2 * path->depth));
            fputs(c->name(c->arg, path->function), name.out);
        }
        add_cell(&t, &name, path->open);
    }
    close_cells(&name);
    table_print(&t, c->out);
    put_rest(c, limit(c, count), count, "paths");
}

// Removes paths in which nothing was called since the counts were set to 0 or
// that have less than `min` percent and, if `roots`, the roots. Returns the
// number of the others.
static uint32_t leave_out(const struct call_paths *p, uint32_t *order,
                          bool roots, double min)
{
    double all = (double)all_time(p);
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        const struct call_path *path = &p->list[order[i]];
        bool nothing = !path->calls && !path->open && !path->total;
        bool small = percent((double)path->total, all) < min;
        if (!nothing && !small && !(roots && call_is_root(path->function)))
            order[n++] = order[i];
    }
    return n;
}

void call_print_paths(const struct call_printing *c, const struct call_paths *p)
{
    bool flat = c->sort == CALLS_BY_TIME || c->sort == CALLS_BY_CALLS;
    uint32_t *order = flat ? all_paths(p) : call_paths_order(c, p, false);
    uint32_t count = leave_out(p, order, flat, 0);

    if (flat)
        order_by_rank(c, p, order, count, limit(c, count), false);
    print_paths(c, p, order, count, flat || c->full_paths);
    free(order);
}

void call_print_tree(const struct call_printing *c, const struct call_paths *p)
{
    struct call_printing by_time = *c;

    by_time.sort = CALLS_BY_TIME;
    uint32_t *order = call_paths_order(&by_time, p, true);
    uint32_t count = leave_out(p, order, false, c->min);
    print_paths(c, p, order, count, c->full_paths);
    if (c->min > 0)
        fprintf(c->out,
                "Paths below %.1f%% of the time are left out (%s shows all)\n",
                c->min, c->show_all);
    free(order);
}

// --- arcs -------------------------------------------------------------------

void call_print_arcs(const struct call_printing *c,
                     const struct calls_arc *arcs, uint32_t count)
{
    static const struct table_column arc_columns[] = { { "Calls", true },
                                                       { "From", false },
                                                       { "To", false } };
    struct ranked *order = get_memory(count, sizeof(*order));
    struct table t;

    for (uint32_t i = 0; i < count; i++)
        order[i] = rank(c, i, arcs[i].count, arcs[i].count, arcs[i].to);
    sort_first(order, count, sizeof(*order), limit(c, count), by_rank);
    table_init(&t, arc_columns, 3);
    for (uint32_t i = 0; i < limit(c, count); i++) {
        const struct calls_arc *a = &arcs[order[i].index];
        add_count(&t, a->count);
        table_add_text(&t, c->name(c->arg, a->from - 1));
        table_add_text(&t, c->name(c->arg, a->to));
    }
    table_print(&t, c->out);
    put_rest(c, limit(c, count), count, "arcs");
    free(order);
}
