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

static void print_info(const struct settings *s, const struct result *r,
                       const struct view *v)
{
    const struct sprofile_info *i = &r->info;

    print_text("program", r->program != NULL ? r->program : "");
    print_number("task", r->task);
    print_text("source", i->source);
    print_text("source_asked", s->options.source);
    print_text("source_instead_of", i->instead_of);
    print_text("event", i->event);
    print_number("rate_hz", i->rate_hz);
    print_number("rate_hz_asked", s->options.rate_hz);
    print_number("period", i->period);
    print_number("random", i->random);
    print_number("cpus", i->cpus);
    print_number("expected", i->expected);
    print_number("taken", i->taken);
    print_number("lost", i->lost);
    print_number("unknown", v->unknown);
    print_number("user", i->user);
    print_number("kernel", i->kernel);
    print_number("irq", i->irq);
    print_number("idle", i->idle);
    print_number("irqs_off", i->irqs_off);
    print_number("others", i->others);
    print_number("missed", i->missed);
    print_number("throttled", i->throttled);
    print_number("unreadable", i->unreadable);
    print_number("malformed", r->samples.reader.malformed);
    print_number("uncounted", r->samples.uncounted);
    print_number("cycles", i->cycles);
    print_number("tsc_hz", i->tsc_hz);
    print_number("elapsed_ns", i->elapsed_ns);
}

static void print_row(const struct settings *s, const struct result *r,
                      const struct view_row *row)
{
    bool places = s->by == BY_SYMBOL || s->by == BY_ADDRESS;

    if (places) {
        const char *path = r->samples.images.list[row->image].path;
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

static void print_branch(const struct settings *s, const struct result *r,
                         const struct view *v, const struct tree *t,
                         uint32_t node)
{
    printf("[");
    for (uint32_t c = t->nodes[node].first; c != 0; c = t->nodes[c].next) {
        const struct tree_node *n = &t->nodes[c];
        char name[256];
        row_name(name, sizeof(name), s, r, &v->rows[n->row]);
        printf("{\"name\": ");
        json_string(stdout, name, strlen(name));
        printf(", \"self\": %" PRIu64 ", \"total\": %" PRIu64 ", \"calls\": ",
               n->self, n->total);
        print_branch(s, r, v, t, c);
        printf("}%s", n->next != 0 ? ",\n" : "");
    }
    printf("]");
}

void report_json(const struct settings *s, struct result *r)
{
    static const struct view_filter all;
    struct view v;
    struct tree t;

    if (view_make(&v, &r->samples, s->by, &all) < 0)
        fail(1, "not enough memory for the report");
    header_complain(stderr, "profile", &r->samples);
    printf("{\n");
    print_info(s, r, &v);
    if (s->tree) {
        if (tree_make(&t, &v, &r->samples, &all, s->inverted) < 0)
            fail(1, "not enough memory for the tree");
        printf("  \"tree\": ");
        print_branch(s, r, &v, &t, 0);
        printf(",\n");
        tree_free(&t);
    }
    print_number("row_count", v.count);
    printf("  \"rows\": [");
    for (uint32_t i = 0; i < v.count && (s->rows == 0 || i < s->rows); i++) {
        printf("%s\n    {", i > 0 ? "," : "");
        print_row(s, r, &v.rows[i]);
        putchar('}');
    }
    printf("\n  ]\n}\n");
    view_free(&v);
}
