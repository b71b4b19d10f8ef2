// profile [stat|reconcile|diff] [OPTIONS] PROGRAM...: where the time is spent.
//
// Starts a program (or, with -t, attaches to a running task), samples it until
// it ends, and prints how many samples were in each of its functions.
#define _GNU_SOURCE // getopt_long
#include "profile.h"

#include "histogram.h"

#include "user/libstrobe/options.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_DEFAULT 20
#define ROWS_UNSET UINT_MAX
#define RATE_MAX 100000
#define SECONDS_MAX 3600
#define DEFAULT_FLAGS SPROFILE_O_RANDOM

static const char usage_lines[] =
    "usage: profile [options] PROGRAM [ARGUMENTS...]\n"
    "       profile [options] -t TASK\n"
    "       profile stat [options] PROGRAM [ARGUMENTS...]    counts; --help\n"
    "       profile reconcile [options] COMMAND...   with a trace; --help\n"
    "       profile --list\n"
    "       profile --repair FILE\n"
    "       profile diff BEFORE... vs AFTER...\n";
static const char options_text[] =
    "  -F HZ       samples a second on each CPU (1000)\n"
    "  -s SOURCES  sample sources (the best one); several, -s A,B, sample "
    "side by\n"
    "              side\n"
    "  -c PERIOD   a sample every PERIOD events, of a source that counts\n"
    "  -e EVENTS   events of such a source (cycles); several: -e A,B\n"
    "              (names: sysinfo system.profile.events)\n"
    "              or @GROUP/NAME[:FIELD], a trace point (trace list)\n"
    "  --fixed     equal distances between samples; default: random ones, "
    "PERIOD or\n"
    "              1/HZ on average, if the source can\n"
    "  -R          random ones, or nothing\n"
    "  -m SECONDS  size of the buffers, in seconds of samples\n"
    "  -C          child tasks as well (--children)\n"
    "  -g          the call tree, callers above their callees\n"
    "  -G          the inverted call tree: functions above their callers\n"
    "  -g=dwarf[,SIZE]  or -G=dwarf: with SIZE bytes of the stack (8192), for\n"
    "              programs without frame pointers\n"
    "  -g=lbr      or -G=lbr: by the CPU's records of calls (sysinfo\n"
    "              system.profile.callers), for such programs, too\n"
    "  --by WHAT   rows are: symbol (the default), address, thread, cpu, task\n"
    "  --rows N    length of the table or the tree; 0: everything (20; a tree: "
    "what has\n"
    "              0.5 %; JSON: everything)\n"
    "  --error     the 95 % confidence interval of each row of the table\n"
    "  -n ROWS     a histogram of addresses instead, with ROWS rows (20)\n"
    "  -r LOW-HIGH the same of these addresses (hexadecimal; below the "
    "program's\n"
    "              code: from its start)\n"
    "  -o FILE     write perf.data for perf and strobe as well; with -g or -G "
    "each\n"
    "              sample with its callers\n"
    "  -t TASK     the running task with this id, until it ends; ^C or a key:\n"
    "              p prints, a pauses and resumes, e ends, q quits\n"
    "  --json      the report as JSON\n"
    "  --list      lists the sample sources\n"
    "  --repair FILE  repairs a truncated perf.data file\n"
    "  --help      this text\n"
    "Inlined functions count as their callers; strobe shows them separately, "
    "from\n"
    "FILE, on the developer's machine.\n"
    "The exit status is the program's; 128 + n when signal n ended it (^C: "
    "130). With\n-t: 0.\n";

// Does not list the options, so that the error message remains on a screen of
// 25 lines.
static _Noreturn void bad_usage(void)
{
    fputs(usage_lines, stderr);
    fputs("The options: profile --help\n", stderr);
    exit(USAGE_STATUS);
}

static enum view_by what(const char *name)
{
    enum view_by by;

    if (view_by_name(name, &by))
        return by;
    if (strcmp(name, "line") == 0)
        fail(USAGE_STATUS,
             "--by line: not supported here: use profile -o FILE, then "
             "strobe lines FILE on the developer's machine");
    complain("--by %s: not one of symbol, address, thread, cpu, task", name);
    bad_usage();
}

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

static void add_names(struct event_names *names, int option, size_t room)
{
    if (!event_names_add(names, option, optarg, room))
        bad_usage();
}

static void set_range(struct settings *s, const char *text)
{
    s->has_range = true;
    if (histogram_parse_range(text, &s->range[0], &s->range[1]))
        return;
    complain("-r %s: not two hexadecimal addresses LOW-HIGH, LOW below HIGH",
             text);
    bad_usage();
}

static int close_output(int status)
{
    if (fflush(stdout) == 0)
        return status;
    complain("writing the report: %s", strerror(errno));
    return 1;
}

static void take_option(struct settings *s, int c, bool *list)
{
    struct sprofile_options *o = &s->options;

    switch (c) {
    case 'F':
        o->rate_hz = number_argument("-F", optarg, 1, RATE_MAX, bad_usage);
        break;
    case 's':
        add_names(&s->sources, c, sizeof(o->source));
        break;
    case 'e':
        add_names(&s->events, c, sizeof(o->event));
        break;
    case 'c':
        o->period = number_argument("-c", optarg, 1, INT_MAX, bad_usage);
        break;
    case 'R':
        o->flags |= SPROFILE_O_RANDOM | SPROFILE_O_NO_FIXED;
        break;
    case 'f':
        o->flags &= ~(uint32_t)(SPROFILE_O_RANDOM | SPROFILE_O_NO_FIXED);
        break;
    case 'C':
        o->flags |= SPROFILE_O_CHILDREN;
        break;
    case 'm':
        s->seconds = number_argument("-m", optarg, 1, SECONDS_MAX, bad_usage);
        break;
    case 'G':
        s->inverted = true;
        // fall through
    case 'g':
        s->tree = true;
        o->flags |= SPROFILE_O_STACKS;
        break;
    case 'b':
        s->by = what(optarg);
        break;
    case 'N':
        s->rows = number_argument("--rows", optarg, 0, INT_MAX, bad_usage);
        break;
    case 'n':
        s->histogram_rows =
            number_argument("-n", optarg, 1, INT_MAX, bad_usage);
        break;
    case 'r':
        set_range(s, optarg);
        break;
    case 'o':
        s->output = optarg;
        break;
    case 't':
        s->task = number_argument("-t", optarg, 1, INT_MAX, bad_usage);
        break;
    case 'j':
        s->json = true;
        break;
    case 'E':
        s->error = true;
        break;
    case 'P':
        repair(optarg);
        exit(close_output(EXIT_SUCCESS));
    case 'l':
        *list = true;
        break;
    case 'h':
        fputs(usage_lines, stdout);
        fputs(options_text, stdout);
        exit(EXIT_SUCCESS);
    default: // getopt_long has printed a message
        bad_usage();
    }
}

// Whether no options but those of the histogram are set.
static bool is_plain(const struct settings *s)
{
    static const struct sprofile_options none = { .flags = DEFAULT_FLAGS };

    return memcmp(&s->options, &none, sizeof(none)) == 0 &&
           s->sources.count + s->events.count == 0 && !s->task && !s->json &&
           !s->tree && !s->seconds && s->by == BY_SYMBOL;
}

static void parse(struct settings *s, int argc, char *argv[])
{
    static const struct option options[] = {
        { "by", required_argument, NULL, 'b' },
        { "children", no_argument, NULL, 'C' },
        { "error", no_argument, NULL, 'E' },
        { "fixed", no_argument, NULL, 'f' },
        { "json", no_argument, NULL, 'j' },
        { "list", no_argument, NULL, 'l' },
        { "repair", required_argument, NULL, 'P' },
        { "rows", required_argument, NULL, 'N' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    bool list = false;
    int c;

    // The + stops option parsing at the program's name.
    while (events_chain_option(argv, &c, &s->options, bad_usage) ||
           (c = getopt_long(argc, argv, "+F:s:e:c:Rm:CgGn:r:o:t:h", options,
                            NULL)) != -1)
        take_option(s, c, &list);
    if (list)
        list_sources(s->json);
    s->tree_limit = tree_limit(s->rows, s->rows != ROWS_UNSET);
    if (s->rows == ROWS_UNSET)
        s->rows = s->json ? 0 : ROWS_DEFAULT;
    if (s->tree && s->by != BY_SYMBOL && s->by != BY_ADDRESS) {
        complain("-g and -G show calls of symbols or addresses (--by)");
        bad_usage();
    }
    s->command = argv + optind;
    if (s->has_range && s->histogram_rows == 0)
        s->histogram_rows = ROWS_DEFAULT;
    if (s->histogram_rows != 0 && !is_plain(s)) {
        complain("-n and -r do not go with other options");
        bad_usage();
    }
    if ((s->task != 0) == (s->command[0] != NULL)) {
        complain(s->task != 0
                     ? "-t TASK and a program do not go together"
                     : "nothing to profile: give a program or -t TASK");
        bad_usage();
    }
}

int main(int argc, char *argv[])
{
    static struct result result;
    struct settings settings = { .options.flags = DEFAULT_FLAGS,
                                 .rows = ROWS_UNSET };

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
        bad_usage();
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
