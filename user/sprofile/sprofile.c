// sprofile [OPTIONS] [COMMAND...]: where the whole system spends its time.
//
// Samples every CPU while the command runs, for some seconds, or until ^C, and
// shows all code: the kernel's and each program's, with their own symbols.
#include "sprofile.h"

#include "user/libstrobe/options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 1000000
#define TOP_ROWS 20

static struct settings settings = { .options.flags = SPROFILE_O_RANDOM,
                                    .min_percent = 1.0,
                                    .rows = TOP_ROWS };

static const char *take_percentage(void *percentage, char *text)
{
    char *end;
    double value = strtod(text, &end);

    *(double *)percentage = value;
    return end != text && *end == '\0' && value >= 0 && value <= 100
               ? NULL
               : "not a percentage from 0 to 100";
}

// Options of profile that mean something else here.
static const char *take_task(void *arg, char *text)
{
    (void)arg;
    fail(USAGE_STATUS,
         "-t %s: to set the duration use --for %s (-t TASK is an option of "
         "profile)",
         text, text);
}

static const char *take_histogram(void *arg, char *text)
{
    (void)arg;
    fail(USAGE_STATUS,
         "-n %s: to set the number of rows use --rows %s (-n, of profile, is a "
         "histogram)",
         text, text);
}

static const struct tool_option options[] = {
    SAMPLING_OPTIONS(settings),
    { 0, "for", "SECONDS", "Duration; default: until the command ends, or ^C",
      .number = &settings.seconds, .min = 1, .max = SECONDS_MAX },
    { 'p', NULL, "PERCENT", "Rows below PERCENT are folded into one (1.0)",
      .take = take_percentage, .arg = &settings.min_percent },
    { 0, "rows", "N",
      "Length of each list, or of the tree; 0: everything (20; a tree: what "
      "has 0.5 %)",
      .number = &settings.rows, .max = INT_MAX, .flag = &settings.rows_given },
    { 'a', NULL, NULL, "A list for each CPU instead of each program",
      .flag = &settings.per_cpu },
    { 'o', NULL, "FILE", "Write perf.data for perf and strobe as well",
      .text = &settings.output },
    { 'q', NULL, NULL, "No report: FILE only", .flag = &settings.quiet },
    { 0, "json", NULL, "Everything, as JSON", .flag = &settings.json },
    { 't', NULL, "TASK", .take = take_task },
    { 'n', NULL, "ROWS", .take = take_histogram },
    { 0 },
};
static const struct tool tool = {
    .usage = "sprofile [OPTIONS] [COMMAND [ARGUMENTS...]]\n"
             "       sprofile top [OPTIONS]",
    .options = options,
    .notes = "Inlined functions count as their callers; strobe shows them "
             "separately, from FILE, on the developer's machine.\n"
             "sprofile's own samples are left out. The exit status is the "
             "command's (130 after ^C), or 0.\n",
    .command = true,
};

static void parse(struct settings *s, int argc, char *argv[])
{
    if (argc > 1 && strcmp(argv[1], "top") == 0) {
        s->live = true;
        argv++;
        argc--;
    }
    int first = options_parse(&tool, argc, argv);
    if (argv[first])
        s->command = argv + first;
    s->options.period = s->period;
    s->tree = s->options.flags & SPROFILE_O_STACKS;
    if (s->live && (s->json || s->rows == 0 || s->rows > TOP_ROWS)) {
        complain("top shows 1 to %d rows, and no JSON", TOP_ROWS);
        options_wrong(&tool);
    }
    if (s->quiet && (!s->output || s->live || s->json)) {
        complain("-q needs -o FILE, and goes with neither top nor --json");
        options_wrong(&tool);
    }
    if (s->tree && (s->per_cpu || s->live)) {
        complain("-g and -G do not go with -a and top");
        options_wrong(&tool);
    }
    s->tree_limit = tree_limit(s->rows, s->rows_given);
}

int main(int argc, char *argv[])
{
    static struct result result;

    settings.argv = argv;
    parse(&settings, argc, argv);
    if (!events_choose(&result.events, &settings.options, &settings.sources,
                       &settings.events))
        options_wrong(&tool);
    if (settings.live && result.events.count > 1) {
        complain("top shows one event");
        options_wrong(&tool);
    }
    if (settings.live)
        fputs("\33[H\33[J", stdout);
    run(&settings, &result, settings.live ? show_top : NULL);
    if (settings.json)
        report_json(&result);
    else if (!settings.live && !settings.quiet)
        report(&settings, &result);
    result.status = events_status(&result.events, result.status);
    events_free(&result.events);
    if (fflush(stdout) != 0) {
        complain("writing the report: %s", strerror(errno));
        return 1;
    }
    return result.status;
}
