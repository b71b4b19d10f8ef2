// The report as text: a header, then a table or the tree of calls.
#include "profile.h"

#include "user/libprofile/shares.h"

#include <limits.h>
#include <string.h>

void row_name(char *out, size_t size, const struct view_row *row, void *arg)
{
    const struct report *r = arg;
    const struct images *images = &r->event->samples.images;
    const struct image *image =
        row->image < images->count ? &images->list[row->image] : NULL;
    enum view_by by = r->settings->by;

    if (by != BY_SYMBOL && by != BY_ADDRESS) {
        key_text(out, size, &r->event->samples, by, row);
        return;
    }
    int n = row->name != NULL
                ? snprintf(out, size, "%.*s", (int)row->name_size, row->name)
            : row->address == 0 ? snprintf(out, size, "[unknown]")
                                : snprintf(out, size, "0x%x", row->address);
    // The profiled program itself is not named.
    bool other =
        image != NULL && row->image != IMAGE_UNKNOWN &&
        (!r->result->program || strcmp(image->path, r->result->program) != 0);
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
    char program[PATH_MAX];

    snprintf(program, sizeof(program), "%s",
             result->program != NULL ? result->program : "?");
    printf("Profile of %s (task %u), %.3f s\n", printable(program),
           result->task, e->info.elapsed_ns / 1e9);
    header_print_event(stdout, event_name(e), e - all->list, all->count);
    header_print(stdout, &e->info, &e->asked, &e->samples, 0, r->view.unknown);
    waits_print(&result->waits);
    putchar('\n');
}

static void print_tree(const struct report *r, const struct naming *naming)
{
    static const struct view_filter all;
    bool inverted = r->settings->inverted;
    struct tree t;

    if (tree_make(&t, &r->view, &r->event->samples, &all, inverted) < 0)
        fail(1, "not enough memory for the tree");
    tree_print(&t, &r->view, inverted, &r->settings->tree_limit, naming);
    tree_free(&t);
}

void view_of_event(struct view *v, const struct settings *s, struct event *e)
{
    static const struct view_filter all;

    shares_even(&e->samples, 0, &e->info);
    if (view_make(v, &e->samples, s->by, &all) < 0)
        fail(1, "not enough memory for the report");
    header_complain(stderr, "profile", &e->samples);
}

static void report_event(const struct settings *s, const struct result *result,
                         struct event *e)
{
    struct report r = { s, result, e, { 0 } };
    struct naming naming = { row_name, &r };

    view_of_event(&r.view, s, e);
    print_header(&r);
    if (s->tree)
        print_tree(&r, &naming);
    else
        rows_print(&r.view, s->by, s->rows, s->error, &naming);
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
