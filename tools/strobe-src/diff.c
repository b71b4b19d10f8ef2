// strobe diff: compares runs. The guest's `profile diff` uses the same code.
#include "html.h"
#include "html_diff.h"
#include "traced.h"

#include <limits.h>
#include <string.h>

#define ROWS_DEFAULT 20

static struct common common;
static const char *rows_text, *output;
static bool json, total, html;

static const struct tool_option options[] = {
    { 'n', "rows", "N", "Length of the table (20); 0: all",
      .text = &rows_text },
    { 'T', "total", NULL, "Functions including their callees", .flag = &total },
    { 'j', "json", NULL, "Everything, as JSON", .flag = &json },
    { 0, "html", NULL, "A page with the flame graph of both, by change",
      .flag = &html },
    { 'o', "output", "OUT", "Output file of the page (standard output)",
      .text = &output },
    EVENT_OPTION(common),
    INLINE_OPTION(common),
    FILE_OPTIONS(common),
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe diff [OPTIONS] BEFORE AFTER\n"
             "       strobe diff [OPTIONS] BEFORE... vs AFTER...",
    .notes = "With several files on each side the output has the "
             "significance of each difference.\n",
    .options = options,
};

struct comparison {
    struct diff diff;
    struct diff_trees trees; // empty without --html
    char build[sizeof(((struct elves *)NULL)->build)];
};

static void add(struct comparison *c, const char *path)
{
    struct profile p;

    profile_open(&p, path, &common);
    const char *problem = diff_add(&c->diff, p.files, &p.samples);
    if (problem)
        fail(1, "%s: %s", path, problem);
    if (html) {
        diff_trees_add(&c->trees, &p.samples, diff_unit(p.files));
        profile_complain_calls(&p);
        memcpy(c->build, p.elves.build, sizeof(c->build));
    }
    profile_complain(&p);
    profile_close(&p);
}

static void page_data(FILE *out, void *arg)
{
    struct comparison *c = arg;

    html_diff(out, &c->diff, &c->trees);
}

static void write_page(struct comparison *c)
{
    diff_trees_sum(&c->trees);
    if (diff_trees_cut(&c->trees) > 0)
        complain("too many call paths: some are cut off");
    FILE *out = result_open(output);
    html_page(out, c->build, "diff", page_data, c);
    result_close(out, output);
}

static void check_options(void)
{
    if (html && json)
        complain("--html and --json: one at a time");
    else if (output && !html)
        complain("-o %s: is for the page: --html -o %s", output, output);
    else if (html && rows_text)
        complain("--rows %s: is for the table; the page has all", rows_text);
    else if (html && total)
        complain(
            "--total: is for the table; the page's graph includes the callees");
    else
        return;
    options_wrong(&tool);
}

// Two traces of calls.
static int compare_traced(const struct diff *d, uint32_t limit)
{
    if (d->runs != 2)
        fail(USAGE_STATUS, "traces of calls are compared one with one: strobe "
                           "diff BEFORE AFTER");
    if (html || json || total || output)
        fail(USAGE_STATUS, "traces of calls have the table of their functions "
                           "only");
    common.traced = true;
    return traced_diff(d->files[0], d->files[1], &common, limit);
}

int command_diff(int argc, char *argv[])
{
    struct comparison c;
    struct diff *d = &c.diff;
    int at = options_parse(&tool, argc, argv);

    check_options();
    uint32_t limit =
        !rows_text ? ROWS_DEFAULT
                   : option_number(&tool, "--rows", rows_text, 0, INT_MAX);
    const char *problem = diff_init(d, total, argc - at, argv + at);
    if (problem) {
        complain("%s", problem);
        options_wrong(&tool);
    }
    if (traced_is(d->files[0]))
        return compare_traced(d, limit);
    diff_trees_init(&c.trees, d->runs);
    for (uint32_t i = 0; i < d->runs; i++)
        add(&c, d->files[i]);
    if (html)
        write_page(&c);
    else if (json)
        diff_json(stdout, d);
    else
        diff_print(stdout, d, limit);
    diff_trees_free(&c.trees);
    diff_free(d);
    return 0;
}
