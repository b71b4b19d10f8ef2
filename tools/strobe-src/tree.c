// strobe tree: the call tree, with the share of time spent in each call.
#include "strobe.h"
#include "traced.h"

#include <stdlib.h>

#define MIN_DEFAULT 0.5

struct settings {
    struct common common;
    const char *min_text;
    double min; // percent; smaller branches are folded into one
    bool inverted;
};

static struct settings settings;

static const struct tool_option options[] = {
    { 'G', "inverted", NULL, "From the innermost functions to their callers",
      .flag = &settings.inverted },
    { 'm', "min", "PERCENT", "Rows below PERCENT are folded into one (0.5)",
      .text = &settings.min_text },
    FILTER_OPTIONS(settings.common),
    INLINE_OPTION(settings.common),
    FILE_OPTIONS(settings.common),
    { 0 },
};
static const struct tool tool = { .usage = "strobe tree [OPTIONS] FILE",
                                  .options = options };

static void name_row(char *out, size_t size, const struct view_row *row,
                     void *arg)
{
    const struct named *n = arg;

    row_name(out, size, n->profile, row, n->alone);
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

    if (p->traced && settings.inverted)
        fail(USAGE_STATUS, "%s: its tree is from the callers inwards only",
             p->path);
    if (p->traced) {
        traced_tree(p, filter, settings.min);
        return;
    }
    if (p->oracle.flat)
        fail(1,
             "%s: flat counts, without calls: tools/vm --oracle FILE counts "
             "them",
             p->path);
    profile_view(&v, p, BY_SYMBOL, filter);
    profile_tree(&t, p, &v, filter, settings.inverted);
    profile_complain(p);
    profile_complain_calls(p);
    profile_header(stdout, p, p->files, &v);
    struct named named = { p, profile_only_image(p) };
    tree_print(
        &t, &v, settings.inverted,
        &(struct tree_limit){ .min = settings.min, .show_all = "--min 0" },
        &(struct naming){ name_row, &named });
    tree_free(&t);
    view_free(&v);
}

int command_tree(int argc, char *argv[])
{
    int at = options_parse(&tool, argc, argv);
    struct view_filter filter = common_filter(&tool, &settings.common);

    settings.common.traced = true;
    settings.min =
        !settings.min_text ? MIN_DEFAULT : percentage(settings.min_text);
    profile_each(one_file(&tool, argc, argv, at), &settings.common, show,
                 &filter);
    return 0;
}
