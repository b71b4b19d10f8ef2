// strobe tree: who calls what, and how much of the time is spent there.
#include "strobe.h"

#include <inttypes.h>
#include <stdlib.h>

#define MIN_DEFAULT 0.5

struct settings {
    struct common common;
    const char *min_text;
    double min; // percent; branches below are summed up
    bool inverted;
};

static struct settings settings;

static const struct tool_option options[] = {
    { 'G', "inverted", NULL, "From the innermost functions to their callers",
      .flag = &settings.inverted },
    { 'm', "min", "PERCENT", "What has less is summed up (0.5)",
      .text = &settings.min_text },
    FILTER_OPTIONS(settings.common),
    FILE_OPTIONS(settings.common),
    { 0 },
};
static const struct tool tool = { .usage = "strobe tree [OPTIONS] FILE",
                                  .options = options };

struct printer {
    const struct profile *p;
    const struct view *v;
    const struct tree *t;
    uint32_t alone;
};

static void print_node(const struct printer *p, const struct tree_node *n,
                       int depth)
{
    double whole = p->v->samples;
    char name[512];

    row_name(name, sizeof(name), p->p, &p->v->rows[n->row], p->alone);
    printf("%6.2f%% %6.2f%%  %*s%s\n", percent(n->total, whole),
           percent(n->self, whole), 2 * depth, "", name);
}

static void print_branch(const struct printer *p, uint32_t node, int depth)
{
    uint64_t small = 0;

    for (uint32_t c = p->t->nodes[node].first; c != 0;
         c = p->t->nodes[c].next) {
        const struct tree_node *n = &p->t->nodes[c];
        if (percent(n->total, p->v->samples) < settings.min) {
            small += n->total;
            continue;
        }
        print_node(p, n, depth);
        print_branch(p, c, depth + 1);
    }
    if (small > 0)
        printf("%6.2f%%          %*s(less than %.1f%% each; --min 0 shows "
               "all)\n",
               percent(small, p->v->samples), 2 * depth, "", settings.min);
}

static double percentage(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end != text && *end == '\0' && value >= 0 && value <= 100)
        return value;
    complain("--min %s: not a percentage from 0 to 100", text);
    options_wrong(&tool);
}

static void show(struct profile *p, void *arg)
{
    const struct view_filter *filter = arg;
    struct view v;
    struct tree t;

    profile_view(&v, p, BY_SYMBOL, filter);
    profile_tree(&t, p, &v, filter, settings.inverted);
    profile_complain(p);
    profile_header(stdout, p, p->files, &v);
    struct printer printer = { p, &v, &t, profile_only_image(p) };
    printf("  Total    Self  %s\n", settings.inverted ? "Called by" : "Calls");
    print_branch(&printer, 0, 0);
    tree_free(&t);
    view_free(&v);
}

int command_tree(int argc, char *argv[])
{
    int at = options_parse(&tool, argc, argv);
    struct view_filter filter = common_filter(&tool, &settings.common);

    settings.min =
        settings.min_text == NULL ? MIN_DEFAULT : percentage(settings.min_text);
    profile_each(one_file(&tool, argc, argv, at), &settings.common, show,
                 &filter);
    return 0;
}
