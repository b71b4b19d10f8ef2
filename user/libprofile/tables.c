#include "tables.h"

#include "header.h"
#include "user/libstrobe/strobe.h"

#include <inttypes.h>
#include <string.h>

#define NAME_SIZE 512

bool view_by_name(const char *name, enum view_by *out)
{
    static const char *const names[] = { [BY_SYMBOL] = "symbol",
                                         [BY_ADDRESS] = "address",
                                         [BY_THREAD] = "thread",
                                         [BY_CPU] = "cpu",
                                         [BY_TASK] = "task" };

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *out = i;
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static void add_row(struct table *t, const struct view *v, bool places,
                    const struct view_row *row, const struct naming *naming)
{
    char name[NAME_SIZE];

    if (places && row->address != 0)
        table_add(t, "0x%x", row->address);
    else if (places)
        table_add(t, "-");
    table_add(t, "%" PRIu64, row->self);
    table_add(t, "%.2f%%", percent(row->self_period, v->period));
    naming->name(name, sizeof(name), row, naming->arg);
    table_add(t, "%s", name);
}

void rows_print(const struct view *v, enum view_by by, uint32_t limit,
                const struct naming *naming)
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
    bool places = by == BY_SYMBOL || by == BY_ADDRESS;
    uint32_t shown = 0, more = 0;
    uint64_t left = v->samples;
    struct table table;

    table_init(&table, places ? columns : keyed, places ? 4 : 3);
    while (shown < v->count && (limit == 0 || shown < limit) &&
           v->rows[shown].self > 0) {
        left -= v->rows[shown].self;
        add_row(&table, v, places, &v->rows[shown++], naming);
    }
    table_print(&table, stdout);
    while (shown + more < v->count && v->rows[shown + more].self > 0)
        more++;
    if (more > 0)
        printf("%u more rows with %" PRIu64 " samples (--rows 0 shows all)\n",
               more, left);
}

struct branches {
    const struct tree *t;
    const struct view *v;
    double min;
    const char *how_all;
    const struct naming *naming;
};

static void print_node(const struct branches *b, const struct tree_node *n,
                       int depth)
{
    char name[NAME_SIZE];

    b->naming->name(name, sizeof(name), &b->v->rows[n->row], b->naming->arg);
    printf("%6.2f%% %6.2f%%  %*s%s\n", percent(n->total_period, b->v->period),
           percent(n->self_period, b->v->period), 2 * depth, "",
           printable(name));
}

static void print_branch(const struct branches *b, uint32_t node, int depth)
{
    const struct tree_node *nodes = b->t->nodes;
    uint64_t small = 0;

    for (uint32_t c = nodes[node].first; c != 0; c = nodes[c].next) {
        if (percent(nodes[c].total_period, b->v->period) < b->min) {
            small += nodes[c].total_period;
            continue;
        }
        print_node(b, &nodes[c], depth);
        print_branch(b, c, depth + 1);
    }
    if (small > 0)
        printf("%6.2f%%          %*s(less than %.1f%% each; %s shows all)\n",
               percent(small, b->v->period), 2 * depth, "", b->min, b->how_all);
}

void tree_print(const struct tree *t, const struct view *v, bool inverted,
                double min, const char *how_all, const struct naming *naming)
{
    struct branches b = { t, v, min, how_all, naming };

    printf("  Total    Self  %s\n", inverted ? "Called by" : "Calls");
    print_branch(&b, 0, 0);
}
