// strobe diff of two traces of calls: exact counts, by the functions' names.
#include "traced.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// One function before and after.
struct change {
    const char *name;
    uint64_t calls[2];
    double own[2]; // ns
};

struct changes {
    struct change *list;
    uint32_t count;
};

static void add(struct changes *c, const struct profile *p, int side)
{
    struct call_paths paths = traced_paths(p, &(struct view_filter){ 0 });
    const struct call_printing *printing = &p->traced->printing;
    struct call_paths functions = call_functions(&paths);

    enough(functions.list);
    c->list = enough(
        realloc(c->list, (c->count + functions.count + 1) * sizeof(*c->list)));
    for (uint32_t i = 0; i < functions.count; i++) {
        const struct call_path *f = &functions.list[i];
        struct change *new = &c->list[c->count++];
        *new = (struct change){ .name = printing->name(printing->arg,
                                                       f->function) };
        new->calls[side] = f->calls;
        new->own[side] = call_ns(printing, f->own);
    }
    call_paths_free(&functions);
    call_paths_free(&paths);
}

static int by_name(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static double size_of(double d)
{
    return d < 0 ? -d : d;
}

static int by_change(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    double dx = size_of(x->own[1] - x->own[0]);
    double dy = size_of(y->own[1] - y->own[0]);

    if (dx != dy)
        return dx < dy ? 1 : -1;
    return by_name(a, b);
}

static void join(struct changes *c)
{
    uint32_t kept = 0;

    qsort(c->list, c->count, sizeof(*c->list), by_name);
    for (uint32_t i = 0; i < c->count; i++) {
        struct change *new = &c->list[i];
        if (!kept || by_name(&c->list[kept - 1], new) != 0) {
            c->list[kept++] = *new;
            continue;
        }
        for (int side = 0; side < 2; side++) {
            c->list[kept - 1].calls[side] += new->calls[side];
            c->list[kept - 1].own[side] += new->own[side];
        }
    }
    c->count = kept;
    qsort(c->list, c->count, sizeof(*c->list), by_change);
}

static void print(const struct changes *c, uint32_t rows)
{
    static const struct table_column columns[] = {
        { "Calls", true },     { "After", true },    { "Change", true },
        { "Own us", true },    { "After us", true }, { "Change us", true },
        { "Function", false },
    };
    uint32_t limit = rows && rows < c->count ? rows : c->count;
    struct table t;

    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (uint32_t i = 0; i < limit; i++) {
        const struct change *f = &c->list[i];
        table_add(&t, "%" PRIu64, f->calls[0]);
        table_add(&t, "%" PRIu64, f->calls[1]);
        table_add(&t, "%+" PRId64, (int64_t)(f->calls[1] - f->calls[0]));
        table_add(&t, "%.3f", f->own[0] / 1e3);
        table_add(&t, "%.3f", f->own[1] / 1e3);
        table_add(&t, "%+.3f", (f->own[1] - f->own[0]) / 1e3);
        table_add(&t, "%s", f->name);
    }
    table_print(&t, stdout);
    if (limit < c->count)
        printf("%u more functions (--rows 0 shows all)\n", c->count - limit);
}

static void open_one(struct profile *p, const char *path,
                     const struct common *c, const char *what)
{
    profile_open(p, path, c);
    if (!p->traced)
        fail(1, "%s: samples cannot be compared with a trace of calls", path);
    images_load(&p->samples.images, IMAGE_KERNEL);
    profile_complain(p);
    printf("%s: ", what);
    profile_header(stdout, p, p->files, NULL);
}

int traced_diff(const char *before, const char *after, const struct common *c,
                uint32_t rows)
{
    struct profile p[2];
    struct changes changes = { 0 };

    open_one(&p[0], before, c, "Before");
    open_one(&p[1], after, c, "After");
    add(&changes, &p[0], 0);
    add(&changes, &p[1], 1);
    join(&changes);
    print(&changes, rows);
    free(changes.list);
    profile_close(&p[0]);
    profile_close(&p[1]);
    return 0;
}
