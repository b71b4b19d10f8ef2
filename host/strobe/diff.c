// strobe diff: compares runs; the guest's `profile diff` is the same code.
#include "strobe.h"

#include "user/libprofile/diff.h"

#include <limits.h>

#define ROWS_DEFAULT 20

static struct common common;
static const char *rows_text;
static bool json, total;

static const struct tool_option options[] = {
    { 'n', "rows", "N", "Length of the table (20); 0: all",
      .text = &rows_text },
    { 'T', "total", NULL, "Functions with what they call", .flag = &total },
    { 'j', "json", NULL, "Everything, as JSON", .flag = &json },
    EVENT_OPTION(common),
    FILE_OPTIONS(common),
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe diff [OPTIONS] BEFORE AFTER\n"
             "       strobe diff [OPTIONS] BEFORE... vs AFTER...",
    .notes = "With several files on each side it is told how likely a "
             "difference is chance.\n",
    .options = options,
};

static void add(struct diff *d, const char *path)
{
    struct profile p;

    profile_open(&p, path, &common);
    const char *problem = diff_add(d, p.files, &p.samples);
    if (problem != NULL)
        fail(1, "%s: %s", path, problem);
    profile_complain(&p);
    profile_close(&p);
}

int command_diff(int argc, char *argv[])
{
    struct diff d;
    int at = options_parse(&tool, argc, argv);
    uint32_t limit = rows_text == NULL ? ROWS_DEFAULT
                                       : option_number(&tool, "--rows",
                                                       rows_text, 0, INT_MAX);
    const char *problem = diff_init(&d, total, argc - at, argv + at);

    if (problem != NULL) {
        complain("%s", problem);
        options_wrong(&tool);
    }
    for (uint32_t i = 0; i < d.runs; i++)
        add(&d, d.files[i]);
    if (json)
        diff_json(stdout, &d);
    else
        diff_print(stdout, &d, limit);
    diff_free(&d);
    return 0;
}
