// The report as JSON, with all counts, for scripts.
#include "profile.h"

#include <inttypes.h>
#include <string.h>

static void print_info(const struct report *r)
{
    const char *program = r->result->program;

    printf("  \"program\": ");
    if (program)
        json_string(stdout, program, strlen(program));
    else
        printf("null");
    printf(",\n  \"task\": %u,\n", r->result->task);
    header_print_json(stdout, &r->event->info, &r->event->asked,
                      &r->event->samples, r->view.unknown);
}

static void print_row(const struct report *r, const struct view_row *row)
{
    enum view_by by = r->settings->by;
    bool places = by == BY_SYMBOL || by == BY_ADDRESS;

    if (places) {
        const char *path = r->event->samples.images.list[row->image].path;
        printf("\"address\": %u, \"image\": ", row->address);
        json_string(stdout, path, strlen(path));
        printf(", \"symbol\": ");
        if (row->name)
            json_string(stdout, row->name, row->name_size);
        else
            printf("null");
    } else {
        printf("\"key\": %u", row->key);
    }
    printf(", \"samples\": %" PRIu64 ", \"total\": %" PRIu64
           ", \"period\": %" PRIu64,
           row->self, row->total, row->self_period);
    if (r->settings->error) {
        struct interval i = view_interval(&r->view, row);
        printf(", \"interval\": [%.6f, %.6f]", i.low, i.high);
    }
}

static void print_branch(const struct report *r, const struct tree *t,
                         uint32_t node)
{
    printf("[");
    for (uint32_t c = t->nodes[node].first; c != 0; c = t->nodes[c].next) {
        const struct tree_node *n = &t->nodes[c];
        char name[256];
        row_name(name, sizeof(name), &r->view.rows[n->row], (void *)r);
        printf("{\"name\": ");
        json_string(stdout, name, strlen(name));
        printf(", \"self\": %" PRIu64 ", \"total\": %" PRIu64 ", \"calls\": ",
               n->self, n->total);
        print_branch(r, t, c);
        printf("}%s", n->next != 0 ? ",\n" : "");
    }
    printf("]");
}

static void print_tree(const struct report *r)
{
    static const struct view_filter all;
    struct tree t;

    if (tree_make(&t, &r->view, &r->event->samples, &all,
                  r->settings->inverted) < 0)
        fail(1, "not enough memory for the tree");
    printf("  \"tree\": ");
    print_branch(r, &t, 0);
    printf(",\n");
    tree_free(&t);
}

static void print_rows(const struct report *r)
{
    const struct view *v = &r->view;
    uint32_t rows = r->settings->rows;

    printf("  \"row_count\": %u,\n  \"rows\": [", v->count);
    for (uint32_t i = 0; i < v->count && (rows == 0 || i < rows); i++) {
        printf("%s\n    {", i > 0 ? "," : "");
        print_row(r, &v->rows[i]);
        putchar('}');
    }
    printf("\n  ]\n");
}

static void report_event(const struct settings *s, const struct result *result,
                         struct event *e)
{
    struct report r = { s, result, e, { 0 } };

    view_of_event(&r.view, s, e);
    printf("{\n");
    print_info(&r);
    if (s->tree)
        print_tree(&r);
    print_rows(&r);
    printf("}");
    view_free(&r.view);
}

// With several events, prints a list with one object for each event.
void report_json(const struct settings *s, struct result *r)
{
    bool several = r->events.count > 1;

    fputs(several ? "{\n  \"events\": [\n" : "", stdout);
    for (uint32_t i = 0; i < r->events.count; i++) {
        fputs(i > 0 ? ",\n" : "", stdout);
        report_event(s, r, &r->events.list[i]);
    }
    fputs(several ? "\n]}\n" : "\n", stdout);
}
