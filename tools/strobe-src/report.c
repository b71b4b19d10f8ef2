// strobe report and strobe lines: a table with rows by symbol, address, source
// line, thread, CPU or task.
#include "strobe.h"
#include "traced.h"

#include <limits.h>
#include <string.h>

#define ROWS_DEFAULT 20

struct report {
    struct common common;
    const char *by_text, *rows_text;
    enum view_by by;
    bool lines;    // by source line
    bool error;    // with confidence intervals
    uint32_t rows; // 0: all
};

static struct report settings;

#define REPORT_OPTIONS                                                   \
    { 'n', "rows", "N", "Length of the table (20); 0: all",              \
      .text = &settings.rows_text },                                     \
        FILTER_OPTIONS(settings.common), INLINE_OPTION(settings.common), \
        FILE_OPTIONS(settings.common),                                   \
    {                                                                    \
        0                                                                \
    }

static const struct tool_option options[] = {
    { 'B', "by", "WHAT",
      "symbol (the default), address, line, thread, cpu, task",
      .text = &settings.by_text },
    { 'E', "error", NULL, "The 95 % confidence interval of each row",
      .flag = &settings.error },
    REPORT_OPTIONS,
};
static const struct tool tool = { .usage = "strobe report [OPTIONS] FILE",
                                  .options = options };

static const struct tool_option lines_options[] = { REPORT_OPTIONS };
static const struct tool lines_tool = { .usage = "strobe lines [OPTIONS] FILE",
                                        .options = lines_options };

static enum view_by what(const char *name)
{
    settings.lines = strcmp(name, "line") == 0;
    if (settings.lines)
        return BY_SYMBOL;

    enum view_by by;
    if (view_by_name(name, &by))
        return by;
    complain("--by %s: not one of symbol, address, line, thread, cpu, task",
             name);
    options_wrong(&tool);
}

static bool is_of_code(void)
{
    return settings.by == BY_SYMBOL || settings.by == BY_ADDRESS;
}

static void name_row(char *out, size_t size, const struct view_row *row,
                     void *arg)
{
    const struct named *n = arg;

    if (is_of_code())
        row_name(out, size, n->profile, row, n->alone);
    else
        key_text(out, size, &n->profile->samples, settings.by, row);
}

// Rows of inlined functions get the real image and, by address, the address of
// the code. By symbol they have no address.
static void place_rows(const struct profile *p, struct view *v)
{
    for (uint32_t i = 0; i < v->count; i++) {
        struct view_row *row = &v->rows[i];
        const struct inlined *inlined = inlines_find(
            &p->inlines, (struct place){ row->image, row->address });
        if (!inlined)
            continue;
        row->image = inlined->place.image;
        row->address = settings.by == BY_ADDRESS ? inlined->place.address : 0;
    }
}

static void show(struct profile *p, void *arg)
{
    const struct view_filter *filter = arg;
    struct view v;

    if (p->traced) {
        if (settings.by != BY_SYMBOL || settings.lines)
            fail(USAGE_STATUS, "%s: its calls are by symbol only", p->path);
        traced_report(p, filter, settings.rows);
        return;
    }
    profile_view(&v, p, settings.by, filter);
    profile_complain(p);
    profile_header(stdout, p, p->files, &v);
    if (settings.lines) {
        print_lines(p, &v, filter, settings.rows);
    } else {
        if (is_of_code())
            place_rows(p, &v);
        rows_print(&v, settings.by, settings.rows, settings.error,
                   &(struct naming){
                       name_row, &(struct named){ p, profile_only_image(p) } });
    }
    view_free(&v);
}

static int run(const struct tool *t, int argc, char *argv[])
{
    int at = options_parse(t, argc, argv);

    settings.rows =
        !settings.rows_text
            ? ROWS_DEFAULT
            : option_number(t, "--rows", settings.rows_text, 0, INT_MAX);
    if (settings.by_text)
        settings.by = what(settings.by_text);
    if (!is_of_code())
        settings.common.no_inline = true; // not visible
    settings.common.traced = t == &tool;
    struct view_filter filter = common_filter(t, &settings.common);
    profile_each(one_file(t, argc, argv, at), &settings.common, show, &filter);
    return 0;
}

int command_report(int argc, char *argv[])
{
    return run(&tool, argc, argv);
}

int command_lines(int argc, char *argv[])
{
    settings.lines = true;
    return run(&lines_tool, argc, argv);
}
