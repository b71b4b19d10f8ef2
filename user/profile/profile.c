// profile [stat|reconcile|diff] [OPTIONS] PROGRAM...: where the time is spent.
//
// Starts a program (or, with -t, attaches to a running task), samples it until
// it ends, and prints how many samples were in each of its functions.
#include "profile.h"

#include "histogram.h"

#include "user/libstrobe/options.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_DEFAULT 20
#define ROWS_UNSET UINT_MAX
#define DEFAULT_FLAGS SPROFILE_O_RANDOM

static struct settings settings = { .options.flags = DEFAULT_FLAGS,
                                    .rows = ROWS_UNSET };
static bool lists;
static const char *damaged;

static const char *take_what(void *by, char *name)
{
    if (view_by_name(name, by))
        return NULL;
    if (strcmp(name, "line") == 0)
        fail(USAGE_STATUS,
             "--by line: not supported here: use profile -o FILE, then "
             "strobe lines FILE on the developer's machine");
    return "not one of symbol, address, thread, cpu, task";
}

static const char *take_range(void *range, char *text)
{
    uint32_t *limits = range;

    settings.has_range = true;
    if (histogram_parse_range(text, &limits[0], &limits[1]))
        return NULL;
    return "not two hexadecimal addresses LOW-HIGH, LOW below HIGH";
}

static const char *take_children(void *options, char *none)
{
    struct sprofile_options *o = options;

    (void)none;
    o->flags |= SPROFILE_O_CHILDREN;
    return NULL;
}

static const struct tool_option options[] = {
    SAMPLING_OPTIONS(settings),
    { 'C', "children", NULL, "Child tasks as well", .take = take_children,
      .arg = &settings.options },
    { 0, "by", "WHAT",
      "Rows are: symbol (the default), address, thread, cpu, task",
      .take = take_what, .arg = &settings.by },
    { 0, "rows", "N",
      "Length of the table or the tree; 0: everything (20; a tree: what has "
      "0.5 %; JSON: everything)",
      .number = &settings.rows, .max = INT_MAX },
    { 0, "error", NULL, "The 95 % confidence interval of each row of the table",
      .flag = &settings.error },
    { 'n', NULL, "ROWS",
      "A histogram of addresses instead, with ROWS rows (20)",
      .number = &settings.histogram_rows, .min = 1, .max = INT_MAX },
    { 'r', NULL, "LOW-HIGH",
      "The same of these addresses (hexadecimal; below the program's code: "
      "from its start)",
      .take = take_range, .arg = settings.range },
    { 'o', NULL, "FILE",
      "Write perf.data for perf and strobe as well; with -g or -G each sample "
      "with its callers",
      .text = &settings.output },
    { 't', NULL, "TASK",
      "The running task with this id, until it ends; ^C or a key: p prints, a "
      "pauses and resumes, e ends, q quits",
      .number = &settings.task, .min = 1, .max = INT_MAX },
    { 0, "json", NULL, "The report as JSON", .flag = &settings.json },
    { 0, "list", NULL, "List the sample sources", .flag = &lists },
    { 0, "repair", "FILE", "Repair a truncated perf.data file",
      .text = &damaged },
    { 0 },
};
static const struct tool tool = {
    .usage =
        "profile [OPTIONS] PROGRAM [ARGUMENTS...]\n"
        "       profile [OPTIONS] -t TASK\n"
        "       profile stat [OPTIONS] PROGRAM [ARGUMENTS...]    counts; "
        "--help\n"
        "       profile reconcile [OPTIONS] COMMAND...   with a trace; --help\n"
        "       profile diff [OPTIONS] BEFORE... vs AFTER...\n"
        "       profile --list\n"
        "       profile --repair FILE",
    .options = options,
    .notes = "Inlined functions count as their callers; strobe shows them "
             "separately, from FILE, on the developer's machine.\n"
             "The exit status is the program's; 128 + n when signal n ended "
             "it (^C: 130). With -t: 0.\n",
    .command = true,
};

static int by_rank(const void *a, const void *b)
{
    const struct sysinfo_sampler *x = a, *y = b;

    return x->rank < y->rank ? 1 : x->rank > y->rank ? -1 : 0;
}

static _Noreturn void list_sources(bool json)
{
    size_t count;
    struct sysinfo_sampler *records = sysinfo_read_records(
        "system.profile.sources", SYSINFO_RECORD_SAMPLER, &count);
    if (!records)
        sysinfo_fail("system.profile.sources");
    else
        qsort(records, count, sizeof(*records), by_rank);
    if (json)
        sysinfo_print_json(stdout, SYSINFO_RECORD_SAMPLER, records, count);
    else
        sysinfo_print(stdout, SYSINFO_RECORD_SAMPLER, records, count);
    exit(EXIT_SUCCESS);
}

static int close_output(int status)
{
    if (fflush(stdout) == 0)
        return status;
    complain("writing the report: %s", strerror(errno));
    return 1;
}

// Whether no options but those of the histogram are set.
static bool is_plain(const struct settings *s)
{
    static const struct sprofile_options none = { .flags = DEFAULT_FLAGS };

    return memcmp(&s->options, &none, sizeof(none)) == 0 &&
           s->sources.count + s->events.count == 0 && !s->task && !s->json &&
           !s->tree && !s->ring_seconds && s->by == BY_SYMBOL;
}

static void parse(struct settings *s, int argc, char *argv[])
{
    s->command = argv + options_parse(&tool, argc, argv);
    if (damaged) {
        repair(damaged);
        exit(close_output(EXIT_SUCCESS));
    }
    if (lists)
        list_sources(s->json);
    s->options.period = s->period;
    s->tree = s->options.flags & SPROFILE_O_STACKS;
    s->tree_limit = tree_limit(s->rows, s->rows != ROWS_UNSET);
    if (s->rows == ROWS_UNSET)
        s->rows = s->json ? 0 : ROWS_DEFAULT;
    if (s->tree && s->by != BY_SYMBOL && s->by != BY_ADDRESS) {
        complain("-g and -G show calls of symbols or addresses (--by)");
        options_wrong(&tool);
    }
    if (s->has_range && s->histogram_rows == 0)
        s->histogram_rows = ROWS_DEFAULT;
    if (s->histogram_rows != 0 && !is_plain(s)) {
        complain("-n and -r do not go with other options");
        options_wrong(&tool);
    }
    if ((s->task != 0) == (s->command[0] != NULL)) {
        complain(s->task != 0
                     ? "-t TASK and a program do not go together"
                     : "nothing to profile: give a program or -t TASK");
        options_wrong(&tool);
    }
}

int main(int argc, char *argv[])
{
    static struct result result;

    if (argc > 1 && strcmp(argv[1], "diff") == 0) {
        argv[1] = argv[0];
        return close_output(diff(argc - 1, argv + 1));
    }
    settings.argv = argv;
    if (argc > 1 && strcmp(argv[1], "stat") == 0)
        return close_output(run_stat(argc - 1, argv + 1));
    if (argc > 1 && strcmp(argv[1], "reconcile") == 0)
        return close_output(run_reconcile(argc - 1, argv + 1));
    parse(&settings, argc, argv);
    if (settings.histogram_rows != 0)
        return close_output(run_histogram(&settings));
    if (!events_choose(&result.events, &settings.options, &settings.sources,
                       &settings.events))
        options_wrong(&tool);
    if (settings.task != 0)
        run_task(&settings, &result);
    else
        run_program(&settings, &result);
    if (settings.json)
        report_json(&settings, &result);
    else
        report(&settings, &result);
    result.status = events_status(&result.events, result.status);
    events_free(&result.events);
    free(result.program);
    return close_output(result.status);
}
