// The report as text: an honest header, then a table or the tree of calls.
#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TREE_PERCENT_MIN 0.5 // branches below are summed up

void row_name(char *out, size_t size, const struct settings *s,
              const struct result *r, const struct view_row *row)
{
    const struct image *image = row->image < r->samples.images.count
                                    ? &r->samples.images.list[row->image]
                                    : NULL;
    static const char *const keys[] = {
        [BY_THREAD] = "thread", [BY_CPU] = "CPU", [BY_TASK] = "task"
    };

    if (s->by != BY_SYMBOL && s->by != BY_ADDRESS) {
        snprintf(out, size, "%s %u", keys[s->by], row->key);
        return;
    }
    int n =
        row->name != NULL
            ? snprintf(out, size, "%.*s", (int)row->name_size, row->name)
            : snprintf(out, size, "%s", row->address == 0 ? "[unknown]" : "");
    // The program itself needs no name.
    bool other = image != NULL && row->image != IMAGE_UNKNOWN &&
                 (r->program == NULL || strcmp(image->path, r->program) != 0);
    if (other && n >= 0 && (size_t)n < size)
        snprintf(out + n, size - n, "%s%s%s%s", n > 0 ? " " : "",
                 image->path[0] == '[' ? "" : "[", image->path,
                 image->path[0] == '[' ? "" : "]");
}

static void print_header(const struct settings *s, const struct result *r,
                         const struct view *v)
{
    printf("Profile of %s (task %u), %.3f s\n",
           r->program != NULL ? r->program : "?", r->task,
           r->info.elapsed_ns / 1e9);
    header_print(stdout, &r->info, &s->options, &r->samples, v->unknown);
    putchar('\n');
}

// --- table ------------------------------------------------------------------

static void print_rows(const struct settings *s, const struct result *r,
                       const struct view *v)
{
    static const struct table_column columns[] = {
        { "Address", true },
        { "Samples", true },
        { "Percent", true },
        { "Symbol", false },
    };
    static const struct table_column keyed[] = {
        { "Samples", true },
        { "Percent", true },
        { "Where", false },
    };
    bool places = s->by == BY_SYMBOL || s->by == BY_ADDRESS;
    uint32_t shown = 0, limit = s->rows == 0 ? v->count : s->rows;
    uint64_t left = v->samples;
    struct table table;
    char name[256];

    table_init(&table, places ? columns : keyed, places ? 4 : 3);
    while (shown < v->count && shown < limit && v->rows[shown].self > 0) {
        const struct view_row *row = &v->rows[shown++];
        if (places && row->address != 0)
            table_add(&table, "0x%x", row->address);
        else if (places)
            table_add(&table, "-");
        table_add(&table, "%" PRIu64, row->self);
        table_add(&table, "%.2f%%", percent(row->self, v->samples));
        row_name(name, sizeof(name), s, r, row);
        table_add(&table, "%s", name);
        left -= row->self;
    }
    table_print(&table, stdout);
    uint32_t more = 0;
    while (shown + more < v->count && v->rows[shown + more].self > 0)
        more++;
    if (more > 0)
        printf("%u more rows with %" PRIu64 " samples (--rows 0 shows all)\n",
               more, left);
}

// --- tree -------------------------------------------------------------------

struct printer {
    const struct settings *s;
    const struct result *r;
    const struct view *v;
    const struct tree *t;
};

static void print_node(const struct printer *p, uint32_t node, int depth)
{
    const struct tree_node *n = &p->t->nodes[node];
    double whole = p->v->samples;
    char name[256];

    row_name(name, sizeof(name), p->s, p->r, &p->v->rows[n->row]);
    printf("%6.2f%% %6.2f%%  %*s%s\n", percent(n->total, whole),
           percent(n->self, whole), 2 * depth, "", name);
}

static void print_branch(const struct printer *p, uint32_t node, int depth)
{
    uint64_t small = 0;

    for (uint32_t c = p->t->nodes[node].first; c != 0;
         c = p->t->nodes[c].next) {
        const struct tree_node *n = &p->t->nodes[c];
        if (p->s->rows != 0 &&
            percent(n->total, p->v->samples) < TREE_PERCENT_MIN) {
            small += n->total;
            continue;
        }
        print_node(p, c, depth);
        print_branch(p, c, depth + 1);
    }
    if (small > 0)
        printf(
            "%6.2f%%          %*s(less than %.1f%% each; --rows 0 shows all)\n",
            percent(small, p->v->samples), 2 * depth, "", TREE_PERCENT_MIN);
}

static void print_tree(const struct settings *s, const struct result *r,
                       const struct view *v)
{
    static const struct view_filter all;
    struct tree t;

    if (tree_make(&t, v, &r->samples, &all, s->inverted) < 0)
        fail(1, "not enough memory for the tree");
    struct printer p = { s, r, v, &t };
    printf("  Total    Self  %s\n", s->inverted ? "Called by" : "Calls");
    print_branch(&p, 0, 0);
    tree_free(&t);
}

void report(const struct settings *s, struct result *r)
{
    static const struct view_filter all;
    struct view v;

    if (view_make(&v, &r->samples, s->by, &all) < 0)
        fail(1, "not enough memory for the report");
    header_complain(stderr, "profile", &r->samples);
    print_header(s, r, &v);
    if (s->tree)
        print_tree(s, r, &v);
    else
        print_rows(s, r, &v);
    view_free(&v);
}
