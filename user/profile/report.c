// The report as text: an honest header, then a table or the tree of calls.
#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TREE_PERCENT_MIN 0.5 // branches below are summed up

void row_name(char *out, size_t size, const struct report *r,
              const struct view_row *row)
{
    const struct images *images = &r->event->samples.images;
    const struct image *image =
        row->image < images->count ? &images->list[row->image] : NULL;
    enum view_by by = r->settings->by;
    static const char *const keys[] = {
        [BY_THREAD] = "thread", [BY_CPU] = "CPU", [BY_TASK] = "task"
    };

    if (by != BY_SYMBOL && by != BY_ADDRESS) {
        snprintf(out, size, "%s %u", keys[by], row->key);
        return;
    }
    int n =
        row->name != NULL
            ? snprintf(out, size, "%.*s", (int)row->name_size, row->name)
            : snprintf(out, size, "%s", row->address == 0 ? "[unknown]" : "");
    // The program itself needs no name.
    bool other = image != NULL && row->image != IMAGE_UNKNOWN &&
                 (r->result->program == NULL ||
                  strcmp(image->path, r->result->program) != 0);
    if (other && n >= 0 && (size_t)n < size)
        snprintf(out + n, size - n, "%s%s%s%s", n > 0 ? " " : "",
                 image->path[0] == '[' ? "" : "[", image->path,
                 image->path[0] == '[' ? "" : "]");
}

static void print_header(const struct report *r)
{
    const struct result *result = r->result;
    const struct events *all = &result->events;
    const struct event *e = r->event;

    printf("Profile of %s (task %u), %.3f s\n",
           result->program != NULL ? result->program : "?", result->task,
           e->info.elapsed_ns / 1e9);
    header_print_event(stdout, event_name(e), e - all->list, all->count);
    header_print(stdout, &e->info, &e->asked, &e->samples, r->view.unknown);
    putchar('\n');
}

// --- table ------------------------------------------------------------------

static void print_rows(const struct report *r)
{
    const struct settings *s = r->settings;
    const struct view *v = &r->view;
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
        row_name(name, sizeof(name), r, row);
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

static void print_node(const struct report *r, const struct tree_node *n,
                       int depth)
{
    double whole = r->view.samples;
    char name[256];

    row_name(name, sizeof(name), r, &r->view.rows[n->row]);
    printf("%6.2f%% %6.2f%%  %*s%s\n", percent(n->total, whole),
           percent(n->self, whole), 2 * depth, "", name);
}

static void print_branch(const struct report *r, const struct tree *t,
                         uint32_t node, int depth)
{
    uint64_t small = 0, whole = r->view.samples;

    for (uint32_t c = t->nodes[node].first; c != 0; c = t->nodes[c].next) {
        const struct tree_node *n = &t->nodes[c];
        if (r->settings->rows != 0 &&
            percent(n->total, whole) < TREE_PERCENT_MIN) {
            small += n->total;
            continue;
        }
        print_node(r, n, depth);
        print_branch(r, t, c, depth + 1);
    }
    if (small > 0)
        printf(
            "%6.2f%%          %*s(less than %.1f%% each; --rows 0 shows all)\n",
            percent(small, whole), 2 * depth, "", TREE_PERCENT_MIN);
}

static void print_tree(const struct report *r)
{
    static const struct view_filter all;
    bool inverted = r->settings->inverted;
    struct tree t;

    if (tree_make(&t, &r->view, &r->event->samples, &all, inverted) < 0)
        fail(1, "not enough memory for the tree");
    printf("  Total    Self  %s\n", inverted ? "Called by" : "Calls");
    print_branch(r, &t, 0, 0);
    tree_free(&t);
}

void view_of_event(struct view *v, const struct settings *s, struct event *e)
{
    static const struct view_filter all;

    if (view_make(v, &e->samples, s->by, &all) < 0)
        fail(1, "not enough memory for the report");
    header_complain(stderr, "profile", &e->samples);
}

static void report_event(const struct settings *s, const struct result *result,
                         struct event *e)
{
    struct report r = { s, result, e, { 0 } };

    view_of_event(&r.view, s, e);
    print_header(&r);
    if (s->tree)
        print_tree(&r);
    else
        print_rows(&r);
    view_free(&r.view);
}

void report(const struct settings *s, struct result *r)
{
    for (uint32_t i = 0; i < r->events.count; i++) {
        if (i > 0)
            putchar('\n');
        report_event(s, r, &r->events.list[i]);
    }
}
