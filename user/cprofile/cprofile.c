// cprofile [OPTIONS] [COMMAND...]: who called whom in the kernel, and how long
// that took: functions and call paths, by tracing each call; docs/trace.md.
#include "cprofile.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_DEFAULT 20
#define ROWS_UNSET UINT_MAX
#define MIN_PERCENT 0.5 // of a path in the tree, without -n
#define ENTRIES_MAX 65536

static struct settings settings = { .options.mode = CALLS_PATHS,
                                    .rows = ROWS_UNSET };
static bool kernel_only; // so far it always is
static uint32_t sort = CALLS_BY_TIME;

static const struct tool_option options[] = {
    { .meaning = "Chooses functions of the kernel; without options all:" },
    { 'k', NULL, NULL, "The kernel's (the default, and so far the only ones)",
      .flag = &kernel_only },
    FUNCTION_OPTIONS(settings.choice),
    { 'D', NULL, "DEPTH", "Up to DEPTH calls within each other (256)",
      .number = &settings.options.depth, .min = 1, .max = CALLS_DEPTH_MAX },
    { 't', NULL, "TASK", "Only what this task does, without interrupts",
      .number = &settings.options.task, .min = 1, .max = INT_MAX },
    { '1', NULL, NULL, "Only what COMMAND's own task does, without interrupts",
      .flag = &settings.own_only },
    { 0, "arcs", NULL, "Count who calls whom, without times and paths: cheaper",
      .number = &settings.options.mode, .value = CALLS_ARCS },
    { 0, "entries", "N", "Memory on each CPU, for N paths or arcs",
      .number = &settings.options.entries, .min = 1, .max = ENTRIES_MAX },
    { .meaning = "Prints a table of functions and one of their call paths:" },
    { 'f', NULL, NULL, "Only that of functions",
      .flag = &settings.functions_only },
    { 'p', NULL, NULL, "Only that of paths", .flag = &settings.paths_only },
    { 'g', NULL, NULL, "The paths as a tree: functions below their callers",
      .flag = &settings.tree },
    { 'T', NULL, NULL, "Sorted by own time (the default)", .number = &sort,
      .value = CALLS_BY_TIME },
    { 'c', NULL, NULL, "... by calls", .number = &sort,
      .value = CALLS_BY_CALLS },
    { 'a', NULL, NULL, "... by name", .number = &sort, .value = CALLS_BY_NAME },
    { 'O', NULL, NULL, "... not at all", .number = &sort,
      .value = CALLS_IN_ORDER },
    { 'i', NULL, NULL, "With -a, -O and -g: whole paths instead of indentation",
      .flag = &settings.full_paths },
    { 'n', NULL, "ROWS",
      "Length of each table; 0: everything (20; a tree: what has 0.5 %)",
      .number = &settings.rows, .max = INT_MAX },
    { 0, "json", NULL, "Everything, as JSON, in TSC cycles",
      .flag = &settings.json },
    { 'o', NULL, "FILE", "Write it to FILE, for strobe, as well",
      .text = &settings.output },
    { 0 },
};
static const struct tool tool = {
    .usage = "cprofile [OPTIONS] [COMMAND [ARGUMENTS...]]\n"
             "       cprofile get [OPTIONS]    of the trace that runs\n"
             "       cprofile reset            all its counts to 0",
    .options = options,
    .notes = "Without COMMAND and -t: until ^C. Functions that have not "
             "returned are marked. The exit status is the command's (130 after "
             "^C), or 0.\n",
    .command = true,
};

static void parse(struct settings *s, int argc, char *argv[])
{
    s->command = argv + options_parse(&tool, argc, argv);
    s->sort = sort;
    if (s->tree && s->rows == ROWS_UNSET) {
        s->min = MIN_PERCENT;
        s->rows = 0;
    }
    if (s->rows == ROWS_UNSET)
        s->rows = s->json ? 0 : ROWS_DEFAULT;
}

static void check_run(const struct settings *s)
{
    if (s->own_only && (s->options.task || !s->command[0]))
        complain("-1 goes with a command, and without -t");
    else if (s->functions_only && (s->paths_only || s->tree))
        complain("-f, and -p or -g: one at a time");
    else
        return;
    options_wrong(&tool);
}

static void check_get(const struct settings *s)
{
    static const struct calls_options none = { .mode = CALLS_PATHS };

    if (s->command[0])
        complain("%s: get takes no command", s->command[0]);
    else if (memcmp(&s->options, &none, sizeof(none)) != 0 || s->own_only ||
             s->choice.pattern_count || s->choice.bytes)
        complain("get shows what the trace has: its functions and tasks were "
                 "chosen when it began");
    else
        return;
    options_wrong(&tool);
}

int main(int argc, char *argv[])
{
    struct settings *s = &settings;
    const char *verb = argc > 1 ? argv[1] : "";
    int status;

    s->argv = argv;
    if (strcmp(verb, "reset") == 0) {
        if (argc == 2)
            return reset();
        complain("%s: reset takes nothing", argv[2]);
        options_wrong(&tool);
    }
    if (strcmp(verb, "get") == 0) {
        argv[1] = argv[0];
        parse(s, argc - 1, argv + 1);
        check_get(s);
        status = get(s);
    } else {
        parse(s, argc, argv);
        check_run(s);
        status = run(s);
    }
    if (fflush(stdout) == 0)
        return status;
    complain("writing the report: %s", strerror(errno));
    return 1;
}
