// Both files as collapsed stacks (folded.c), whose lines are joined by their
// text. The last frame of a stack is the function that executes.
#include "exact_diff.h"

#include "export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// Instructions of a path, or of a function, before and after.
struct change {
    const char *name;
    uint64_t count[2];
};

struct changes {
    struct change *list;
    size_t count, room;
};

static int64_t change_of(const struct change *c)
{
    return (int64_t)(c->count[1] - c->count[0]);
}

static void add(struct changes *c, const char *name, unsigned side,
                uint64_t count)
{
    if (c->count == c->room) {
        c->room = 2 * c->room + 1024;
        c->list = realloc(c->list, c->room * sizeof(*c->list));
        if (!c->list)
            fail(1, "not enough memory");
    }
    c->list[c->count] = (struct change){ .name = name };
    c->list[c->count++].count[side] = count;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct change *)a)->name,
                  ((const struct change *)b)->name);
}

static int by_change(const void *a, const void *b)
{
    int64_t x = llabs(change_of(a)), y = llabs(change_of(b));
    return x != y ? (x < y ? 1 : -1) : by_name(a, b);
}

// Sums the entries of each name.
static void join(struct changes *c)
{
    size_t kept = 0;
    qsort(c->list, c->count, sizeof(*c->list), by_name);
    for (size_t i = 0; i < c->count; i++) {
        struct change *last = kept ? &c->list[kept - 1] : NULL;
        if (last && strcmp(last->name, c->list[i].name) == 0) {
            last->count[0] += c->list[i].count[0];
            last->count[1] += c->list[i].count[1];
        } else {
            c->list[kept++] = c->list[i];
        }
    }
    c->count = kept;
}

// Returns the file's stacks as text, which the names of `paths` point into.
static char *stacks_of(struct profile *p)
{
    struct view_filter filter = { .by_event = false };
    struct view v;
    char *text = NULL;
    size_t size = 0;
    profile_view(&v, p, BY_SYMBOL, &filter);
    struct export e = { .profile = p,
                        .view = &v,
                        .filter = &filter,
                        .out = open_memstream(&text, &size),
                        .inlined = true };
    if (!e.out)
        fail(1, "not enough memory");
    export_folded(&e);
    if (fclose(e.out) != 0)
        fail(1, "not enough memory");
    view_free(&v);
    return text;
}

static void read_stacks(char *text, unsigned side, struct changes *paths,
                        struct changes *functions)
{
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *space = strrchr(line, ' ');
        uint64_t count = strtoull(space + 1, NULL, 10);
        *space = '\0';
        const char *function = strrchr(line, ';');
        add(paths, line, side, count);
        add(functions, function ? function + 1 : line, side, count);
    }
}

static void print(struct changes *c, const char *what, uint32_t rows)
{
    const struct table_column columns[] = { { "Change", true },
                                            { "Before", true },
                                            { "After", true },
                                            { what, false } };
    struct table t;
    size_t changed = 0;
    int64_t left = 0;
    join(c);
    qsort(c->list, c->count, sizeof(*c->list), by_change);
    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (; changed < c->count && change_of(&c->list[changed]); changed++) {
        const struct change *row = &c->list[changed];
        if (rows && changed >= rows) {
            left += change_of(row);
            continue;
        }
        table_add(&t, "%+" PRId64, change_of(row));
        table_add(&t, "%" PRIu64, row->count[0]);
        table_add(&t, "%" PRIu64, row->count[1]);
        table_add(&t, "%s", row->name);
    }
    table_print(&t, stdout);
    if (rows && changed > rows)
        printf("%+" PRId64 " in %zu more (--rows 0 shows all)\n", left,
               changed - rows);
}

void exact_diff(struct profile *before, struct profile *after, uint32_t rows)
{
    struct profile *profiles[] = { before, after };
    struct changes paths = { 0 }, functions = { 0 };
    char *texts[2];
    for (unsigned side = 0; side < 2; side++) {
        texts[side] = stacks_of(profiles[side]);
        read_stacks(texts[side], side, &paths, &functions);
    }
    printf("%+" PRId64 " instructions: %" PRIu64 " before, %" PRIu64
           " after\n\n",
           (int64_t)(after->oracle.counted - before->oracle.counted),
           before->oracle.counted, after->oracle.counted);
    print(&functions, "Function", rows);
    putchar('\n');
    if (before->oracle.flat || after->oracle.flat)
        puts("No paths: flat counts. tools/vm --oracle FILE counts by path");
    else
        print(&paths, "Path", rows);
    for (unsigned side = 0; side < 2; side++)
        free(texts[side]);
    free(paths.list);
    free(functions.list);
}
