// The report as JSON: everything that was counted, for scripts.
#include "profile.h"

#include <inttypes.h>
#include <string.h>

static void print_number(const char *name, uint64_t value)
{
    printf("  \"%s\": %" PRIu64 ",\n", name, value);
}

static void print_text(const char *name, const char *text)
{
    printf("  \"%s\": ", name);
    json_string(stdout, text, strlen(text));
    printf(",\n");
}

static void print_info(const struct report *r)
{
    const struct sprofile_info *i = &r->event->info;
    const struct sprofile_options *asked = &r->event->asked;
    const struct samples *samples = &r->event->samples;
    const char *program = r->result->program;

    print_text("program", program != NULL ? program : "");
    print_number("task", r->result->task);
    print_text("source", i->source);
    print_text("source_asked", asked->source);
    print_text("source_instead_of", i->instead_of);
    print_text("event", i->event);
    print_number("rate_hz", i->rate_hz);
    print_number("rate_hz_asked", asked->rate_hz);
    print_number("period", i->period);
    print_number("random", i->random);
    print_number("cpus", i->cpus);
    print_number("expected", i->expected);
    print_number("taken", i->taken);
    print_number("lost", i->lost);
    print_number("unknown", r->view.unknown);
    print_number("user", i->user);
    print_number("kernel", i->kernel);
    print_number("irq", i->irq);
    print_number("idle", i->idle);
    print_number("irqs_off", i->irqs_off);
    print_number("others", i->others);
    print_number("missed", i->missed);
    print_number("throttled", i->throttled);
    print_number("unreadable", i->unreadable);
    print_number("malformed", samples->reader.malformed);
    print_number("uncounted", samples->uncounted);
    print_number("cycles", i->cycles);
    print_number("tsc_hz", i->tsc_hz);
    print_number("elapsed_ns", i->elapsed_ns);
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
        if (row->name != NULL)
            json_string(stdout, row->name, row->name_size);
        else
            printf("null");
    } else {
        printf("\"key\": %u", row->key);
    }
    printf(", \"samples\": %" PRIu64 ", \"total\": %" PRIu64
           ", \"period\": %" PRIu64,
           row->self, row->total, row->self_period);
}

static void print_branch(const struct report *r, const struct tree *t,
                         uint32_t node)
{
    printf("[");
    for (uint32_t c = t->nodes[node].first; c != 0; c = t->nodes[c].next) {
        const struct tree_node *n = &t->nodes[c];
        char name[256];
        row_name(name, sizeof(name), r, &r->view.rows[n->row]);
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

    print_number("row_count", v->count);
    printf("  \"rows\": [");
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

// Of several events a list of what is said of one.
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
