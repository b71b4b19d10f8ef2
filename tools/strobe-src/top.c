// strobe top: the functions with most time, and their cumulative share.
#include "strobe.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#define ROWS_DEFAULT 10

struct settings {
    struct common common;
    const char *rows_text;
    uint32_t rows; // 0: all
    bool total;    // by total, not by self
};

static struct settings settings;

static const struct tool_option options[] = {
    { 'n', "rows", "N", "Number of functions (10); 0: all",
      .text = &settings.rows_text },
    { 'T', "total", NULL, "Sort by time including callees",
      .flag = &settings.total },
    FILTER_OPTIONS(settings.common),
    INLINE_OPTION(settings.common),
    FILE_OPTIONS(settings.common),
    { 0 },
};
static const struct tool tool = { .usage = "strobe top [OPTIONS] FILE",
                                  .options = options };

static int by_total(const void *a, const void *b)
{
    const struct view_row *x = a, *y = b;

    if (x->total_period != y->total_period)
        return x->total_period < y->total_period ? 1 : -1;
    if (x->self_period != y->self_period)
        return x->self_period < y->self_period ? 1 : -1;
    if (x->image != y->image)
        return x->image < y->image ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void print_modes(const struct view *v)
{
    static const char *const names[] = { [MODE_USER] = "user",
                                         [MODE_KERNEL] = "kernel",
                                         [MODE_IRQ] = "irq",
                                         [MODE_IDLE] = "idle" };

    printf("%" PRIu64 " samples:", v->samples);
    for (unsigned m = 0; m < MODES; m++)
        printf("%s %s %.1f%%", m > 0 ? "," : "", names[m],
               percent(v->mode_periods[m], v->period));
    printf("\n\n");
}

static void print_rows(const struct profile *p, const struct view *v,
                       uint32_t limit)
{
    static const struct table_column columns[] = {
        { "Self", true },  { "Self%", true },  { "Sum%", true },
        { "Total", true }, { "Total%", true }, { "Function", false },
    };
    uint32_t alone = profile_only_image(p);
    struct table table;
    uint64_t sum = 0;
    char name[512];

    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (uint32_t i = 0; i < v->count && (limit == 0 || i < limit); i++) {
        const struct view_row *row = &v->rows[i];
        if (row->total == 0)
            break;
        sum += row->self_period;
        table_add(&table, "%" PRIu64, row->self);
        table_add(&table, "%.2f%%", percent(row->self_period, v->period));
        table_add(&table, "%.2f%%", percent(sum, v->period));
        table_add(&table, "%" PRIu64, row->total);
        table_add(&table, "%.2f%%", percent(row->total_period, v->period));
        row_name(name, sizeof(name), p, row, alone);
        table_add(&table, "%s", name);
    }
    table_print(&table, stdout);
}

static void show(struct profile *p, void *arg)
{
    struct view v;

    profile_view(&v, p, BY_SYMBOL, arg);
    profile_complain(p);
    profile_header(stdout, p, p->files, &v);
    print_modes(&v);
    if (settings.total) // v.row_of is not used below
        qsort(v.rows, v.count, sizeof(*v.rows), by_total);
    print_rows(p, &v, settings.rows);
    view_free(&v);
}

int command_top(int argc, char *argv[])
{
    int at = options_parse(&tool, argc, argv);
    struct view_filter filter = common_filter(&tool, &settings.common);

    settings.rows =
        !settings.rows_text
            ? ROWS_DEFAULT
            : option_number(&tool, "--rows", settings.rows_text, 0, INT_MAX);
    profile_each(one_file(&tool, argc, argv, at), &settings.common, show,
                 &filter);
    return 0;
}
