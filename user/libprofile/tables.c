#include "tables.h"

#include "header.h"
#include "user/libstrobe/strobe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 512
#define COLUMNS_MAX 5
#define TREE_PERCENT_MIN 0.5 // smaller branches are folded into one line

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

static uint32_t task_of(const struct samples *s, uint32_t thread)
{
    uint32_t i = 0;

    while (i < s->count && s->counts[i].thread != thread)
        i++;
    return i < s->count ? s->counts[i].task : 0;
}

void key_text(char *out, size_t size, const struct samples *s, enum view_by by,
              const struct view_row *row)
{
    uint32_t task = by == BY_THREAD ? task_of(s, row->key) : row->key;

    if (by == BY_CPU)
        snprintf(out, size, "CPU %u", row->key);
    else
        snprintf(out, size, "%s %u %s", by == BY_TASK ? "task" : "thread",
                 row->key, samples_thread_name(s, task, row->key));
}

struct interval view_interval(const struct view *v, const struct view_row *row)
{
    double period = v->period;

    if (v->squares <= 0)
        return (struct interval){ 0, 1 };
    return binomial_interval(period * period / v->squares,
                             row->self_period / period);
}

static void add_row(struct table *t, const struct view *v, bool places,
                    bool error, const struct view_row *row,
                    const struct naming *naming)
{
    struct interval i = view_interval(v, row);
    char name[NAME_SIZE];

    if (places && row->address != 0)
        table_add(t, "0x%x", row->address);
    else if (places)
        table_add(t, "-");
    table_add(t, "%" PRIu64, row->self);
    table_add(t, "%.2f%%", percent(row->self_period, v->period));
    if (error)
        table_add(t, "%.2f-%.2f%%", 100 * i.low, 100 * i.high);
    naming->name(name, sizeof(name), row, naming->arg);
    table_add(t, "%s", name);
}

void rows_print(const struct view *v, enum view_by by, uint32_t limit,
                bool error, const struct naming *naming)
{
    bool places = by == BY_SYMBOL || by == BY_ADDRESS;
    uint32_t shown = 0, more = 0, columns = 0;
    uint64_t left = v->samples;
    struct table_column column[COLUMNS_MAX];
    struct table table;

    if (places)
        column[columns++] = (struct table_column){ "Address", true };
    column[columns++] = (struct table_column){ "Samples", true };
    column[columns++] = (struct table_column){ "Percent", true };
    if (error)
        column[columns++] = (struct table_column){ "95 % sure", true };
    column[columns++] =
        (struct table_column){ places ? "Symbol" : "Where", false };
    table_init(&table, column, columns);
    while (shown < v->count && (limit == 0 || shown < limit) &&
           v->rows[shown].self > 0) {
        left -= v->rows[shown].self;
        add_row(&table, v, places, error, &v->rows[shown++], naming);
    }
    table_print(&table, stdout);
    while (shown + more < v->count && v->rows[shown + more].self > 0)
        more++;
    if (more > 0)
        printf("%u more rows with %" PRIu64 " samples (--rows 0 shows all)\n",
               more, left);
}

// --- trees ------------------------------------------------------------------

struct branches {
    const struct tree *t;
    const struct view *v;
    const struct tree_limit *limit;
    const struct naming *naming;
    bool *shown; // for each node; NULL: decided by limit->min
};

static bool is_shown(const struct branches *b, uint32_t node)
{
    double share = percent(b->t->nodes[node].total_period, b->v->period);

    return b->shown != NULL ? b->shown[node] : share >= b->limit->min;
}

// `head`: the node is one of several branches.
static void print_node(const struct branches *b, const struct tree_node *n,
                       int depth, bool head)
{
    char name[NAME_SIZE];

    b->naming->name(name, sizeof(name), &b->v->rows[n->row], b->naming->arg);
    printf("%6.2f%% %6.2f%%  %*s%s%s\n", percent(n->total_period, b->v->period),
           percent(n->self_period, b->v->period), 2 * depth, "",
           head ? "- " : "", printable(name));
}

// A single branch continues below its caller without indentation; of several
// branches each begins with a dash.
static void print_branch(const struct branches *b, uint32_t node, int depth)
{
    const struct tree_node *nodes = b->t->nodes;
    uint32_t lines = 0;
    uint64_t small = 0;

    for (uint32_t c = nodes[node].first; c != 0; c = nodes[c].next) {
        if (is_shown(b, c))
            lines++;
        else
            small += nodes[c].total_period;
    }
    bool summed_up = small > 0 && !b->shown;
    bool several = lines + summed_up > 1;
    for (uint32_t c = nodes[node].first; c != 0; c = nodes[c].next) {
        if (!is_shown(b, c))
            continue;
        print_node(b, &nodes[c], depth, several);
        print_branch(b, c, depth + several);
    }
    if (summed_up)
        printf("%6.2f%%          %*s%s(less than %.1f%% each; %s shows all)\n",
               percent(small, b->v->period), 2 * depth, "", several ? "- " : "",
               b->limit->min, b->limit->show_all);
}

struct ranked {
    uint64_t rank;
    uint32_t node, depth;
};

// Among nodes of equal rank, the lower number is first: callers are created
// before the functions they call.
static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? 1 : -1;
    return x->node < y->node ? -1 : x->node > y->node;
}

// Chooses the `rows` nodes with the highest rank. In an inverted tree the time
// is divided by the depth; otherwise the callers of the first function would
// take all rows. No node ranks higher than its parent, so the parent is shown,
// too.
static void choose(struct branches *b, uint32_t rows, bool inverted)
{
    const struct tree *t = b->t;
    struct ranked *list = calloc(t->count, sizeof(*list));

    b->shown = calloc(t->count, sizeof(*b->shown));
    if (!list || !b->shown)
        fail(1, "not enough memory for the tree");
    for (uint32_t i = 1; i < t->count; i++) {
        uint32_t depth = list[t->nodes[i].parent].depth + 1;
        uint64_t total = t->nodes[i].total_period;
        list[i] = (struct ranked){ inverted ? total / depth : total, i, depth };
    }
    qsort(list + 1, t->count - 1, sizeof(*list), by_rank);
    for (uint32_t i = 1; i <= rows && i < t->count; i++)
        b->shown[list[i].node] = true;
    free(list);
}

static double most_left(const struct branches *b)
{
    uint64_t most = 0;

    for (uint32_t i = 1; i < b->t->count; i++) {
        uint64_t total = b->t->nodes[i].total_period;
        most = !b->shown[i] && total > most ? total : most;
    }
    return percent(most, b->v->period);
}

struct tree_limit tree_limit(uint32_t rows, bool given)
{
    return (struct tree_limit){ .rows = given ? rows : 0,
                                .min = given ? 0.0 : TREE_PERCENT_MIN,
                                .show_all = "--rows 0" };
}

void tree_print(const struct tree *t, const struct view *v, bool inverted,
                const struct tree_limit *limit, const struct naming *naming)
{
    struct branches b = { t, v, limit, naming, NULL };

    if (limit->rows > 0)
        choose(&b, limit->rows, inverted);
    printf("  Total    Self  %s\n", inverted ? "Called by" : "Calls");
    print_branch(&b, 0, 0);
    if (limit->rows > 0 && t->count - 1 > limit->rows)
        printf("%u more rows with %.2f%% at most (%s shows all)\n",
               t->count - 1 - limit->rows, most_left(&b), limit->show_all);
    free(b.shown);
}
