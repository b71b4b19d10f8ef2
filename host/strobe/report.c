// strobe report, strobe lines: one table, the rows by symbol, address, source
// line, thread, CPU or task.
#include "strobe.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define ROWS_DEFAULT 20

struct report {
    struct common common;
    const char *by_text, *rows_text;
    enum view_by by;
    bool lines;    // by source line
    uint32_t rows; // 0: all
};

static struct report settings;

#define REPORT_OPTIONS                                                  \
    { 'n', "rows", "N", "Length of the table (20); 0: all",             \
      .text = &settings.rows_text },                                    \
        FILTER_OPTIONS(settings.common), FILE_OPTIONS(settings.common), \
    {                                                                   \
        0                                                               \
    }

static const struct tool_option options[] = {
    { 'B', "by", "WHAT",
      "symbol (the default), address, line, thread, cpu, task",
      .text = &settings.by_text },
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

    static const char *const names[] = { [BY_SYMBOL] = "symbol",
                                         [BY_ADDRESS] = "address",
                                         [BY_THREAD] = "thread",
                                         [BY_CPU] = "cpu",
                                         [BY_TASK] = "task" };

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0)
            return i;
    }
    complain("--by %s: not one of symbol, address, line, thread, cpu, task",
             name);
    options_wrong(&tool);
}

static void add_row(struct table *t, struct profile *p, const struct view *v,
                    const struct view_row *row)
{
    bool places = settings.by == BY_SYMBOL || settings.by == BY_ADDRESS;
    char name[512];

    if (places && row->address != 0)
        table_add(t, "0x%x", row->address);
    else if (places)
        table_add(t, "-");
    table_add(t, "%" PRIu64, row->self);
    table_add(t, "%.2f%%", percent(row->self, v->samples));
    if (places)
        row_name(name, sizeof(name), p, row, profile_only_image(p));
    else
        key_text(name, sizeof(name), p, settings.by, row);
    table_add(t, "%s", name);
}

static void print_rows(struct profile *p, const struct view *v)
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
    bool places = settings.by == BY_SYMBOL || settings.by == BY_ADDRESS;
    uint32_t shown = 0, limit = settings.rows == 0 ? v->count : settings.rows;
    uint64_t left = v->samples;
    struct table table;

    table_init(&table, places ? columns : keyed, places ? 4 : 3);
    while (shown < v->count && shown < limit && v->rows[shown].self > 0) {
        left -= v->rows[shown].self;
        add_row(&table, p, v, &v->rows[shown++]);
    }
    table_print(&table, stdout);
    uint32_t more = 0;
    while (shown + more < v->count && v->rows[shown + more].self > 0)
        more++;
    if (more > 0)
        printf("%u more rows with %" PRIu64 " samples (--rows 0 shows all)\n",
               more, left);
}

static void show(struct profile *p, void *arg)
{
    const struct view_filter *filter = arg;
    struct view v;

    profile_view(&v, p, settings.by, filter);
    profile_complain(p);
    profile_header(stdout, p, p->files, &v);
    if (settings.lines)
        print_lines(p, &v, filter, settings.rows);
    else
        print_rows(p, &v);
    view_free(&v);
}

static int run(const struct tool *t, int argc, char *argv[])
{
    int at = options_parse(t, argc, argv);

    settings.rows =
        settings.rows_text == NULL
            ? ROWS_DEFAULT
            : option_number(t, "--rows", settings.rows_text, 0, INT_MAX);
    if (settings.by_text != NULL)
        settings.by = what(settings.by_text);
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
