#include "diff_tree.h"

#include "strobe.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define PATHS_MAX (1u << 22)

static void no_memory(void)
{
    fail(1, "not enough memory to compare the calls");
}

static void *get_memory(void *old, size_t count, size_t size)
{
    void *memory = reallocarray(old, count > 0 ? count : 1, size);

    if (!memory)
        no_memory();
    return memory;
}

static void tree_init(struct diff_tree *t)
{
    *t = (struct diff_tree){ 0 };
    if (chains_init(&t->paths, PATHS_MAX) < 0)
        no_memory();
}

static void tree_drop(struct diff_tree *t)
{
    chains_free(&t->paths);
    free(t->values);
}

void diff_trees_init(struct diff_trees *t, uint32_t runs)
{
    *t = (struct diff_trees){ .runs = runs };
    tree_init(&t->calls);
    tree_init(&t->inverted);
}

static int compare_symbols(const void *x, const void *y)
{
    const struct diff_symbol *a = x, *b = y;
    int names = strcmp(a->name, b->name);

    return names != 0 ? names : strcmp(a->path, b->path);
}

void diff_trees_free(struct diff_trees *t)
{
    for (uint32_t i = 0; i < t->symbol_count; i++) {
        struct diff_symbol *s = t->symbols[i];
        tdelete(s, &t->by_name, compare_symbols);
        free(s->name);
        free(s->path);
        free(s);
    }
    free(t->symbols);
    tree_drop(&t->calls);
    tree_drop(&t->inverted);
}

// --- symbols ----------------------------------------------------------------

static uint32_t add_symbol(struct diff_trees *t, const struct diff_symbol *like)
{
    struct diff_symbol *s = get_memory(NULL, 1, sizeof(*s));

    *s = (struct diff_symbol){ strdup(like->name), strdup(like->path),
                               t->symbol_count };
    if (!s->name || !s->path || !tsearch(s, &t->by_name, compare_symbols))
        no_memory();
    if (t->symbol_count == t->symbol_room) {
        t->symbol_room = 2 * t->symbol_room + 256;
        t->symbols =
            get_memory(t->symbols, t->symbol_room, sizeof(*t->symbols));
    }
    t->symbols[t->symbol_count++] = s;
    return s->number;
}

static uint32_t number_of(struct diff_trees *t, const char *name, size_t size,
                          const char *path)
{
    char *copy = strndup(name, size);
    const struct diff_symbol like = { .name = copy, .path = (char *)path };

    if (!copy)
        no_memory();
    struct diff_symbol **found = tfind(&like, &t->by_name, compare_symbols);
    uint32_t number = found != NULL ? (*found)->number : add_symbol(t, &like);
    free(copy);
    return number;
}

static uint32_t number_of_row(struct diff_trees *t, const struct samples *s,
                              const struct view_row *r)
{
    static const char none[] = "(no symbol)"; // addresses differ between builds
    const char *path = s->images.list[r->image].path;

    return r->name != NULL ? number_of(t, r->name, r->name_size, path)
                           : number_of(t, none, strlen(none), path);
}

// --- adding -----------------------------------------------------------------

// A path of symbols: the innermost function first, the program last.
struct path {
    uint32_t *symbols;
    uint32_t count, room;
};

static void path_push(struct path *p, uint32_t symbol)
{
    if (p->count == p->room) {
        p->room = 2 * p->room + 64;
        p->symbols = get_memory(p->symbols, p->room, sizeof(*p->symbols));
    }
    p->symbols[p->count++] = symbol;
}

static void add_path(struct diff_tree *t, const struct diff_trees *all,
                     const struct path *path, bool inverted, double value)
{
    uint32_t node = CHAIN_ROOT;

    for (uint32_t i = 0; i < path->count; i++) {
        uint32_t symbol = path->symbols[inverted ? i : path->count - 1 - i];
        node = chains_add(&t->paths, node, (struct place){ 0, symbol });
    }
    if (t->room < t->paths.room) {
        t->values = get_memory(t->values, (size_t)t->paths.room * all->runs,
                               sizeof(double));
        memset(t->values + (size_t)t->room * all->runs, 0,
               (size_t)(t->paths.room - t->room) * all->runs * sizeof(double));
        t->room = t->paths.room;
    }
    t->values[(size_t)node * all->runs + all->added] += value;
}

void diff_trees_add(struct diff_trees *t, struct samples *s, double unit)
{
    static const struct view_filter all = { 0 };
    struct path path = { 0 };
    struct view v;

    if (view_make(&v, s, BY_SYMBOL, &all) < 0)
        no_memory();
    uint32_t *numbers = get_memory(NULL, v.count, sizeof(*numbers));
    for (uint32_t i = 0; i < v.count; i++)
        numbers[i] = number_of_row(t, s, &v.rows[i]);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *c = &s->counts[i];
        const char *program = programs_name(&s->programs, c->program);
        if (c->mode == MODE_IDLE)
            continue;
        path.count = 0;
        for (uint32_t n = c->chain; n != CHAIN_ROOT;
             n = s->chains.nodes[n].parent)
            path_push(&path, numbers[v.row_of[n]]);
        path_push(&path, number_of(t, program, strlen(program), ""));
        add_path(&t->calls, t, &path, false, c->period / unit);
        add_path(&t->inverted, t, &path, true, c->period / unit);
    }
    free(numbers);
    free(path.symbols);
    view_free(&v);
    t->added++;
}

static void tree_sum(struct diff_tree *t, uint32_t runs)
{
    if (!t->values)
        t->values = calloc(runs, sizeof(double)); // of the root
    if (!t->values)
        no_memory();
    // A node's parent precedes it.
    for (uint32_t node = t->paths.count - 1; node != CHAIN_ROOT; node--) {
        const double *from = t->values + (size_t)node * runs;
        double *to = t->values + (size_t)t->paths.nodes[node].parent * runs;
        for (uint32_t r = 0; r < runs; r++)
            to[r] += from[r];
    }
}

void diff_trees_sum(struct diff_trees *t)
{
    tree_sum(&t->calls, t->runs);
    tree_sum(&t->inverted, t->runs);
}
