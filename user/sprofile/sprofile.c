// sprofile [OPTIONS] [COMMAND...]: where the whole system spends its time.
//
// Samples every CPU while the command runs, for some seconds, or until ^C, and
// shows all code: the kernel's and each program's, with their own symbols.
#define _GNU_SOURCE // getopt_long
#include "sprofile.h"

#include "user/libstrobe/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MAX 100000
#define SECONDS_MAX 1000000
#define RING_SECONDS_MAX 3600
#define TOP_ROWS 20

static const char usage_text[] =
    "usage: sprofile [options] [COMMAND [ARGUMENTS...]]\n"
    "       sprofile top [options]\n"
    "  -F HZ       samples a second on each CPU (1000)\n"
    "  -s SOURCES  sample sources (the best one); several, -s A,B, sample "
    "side by\n"
    "              side\n"
    "  -e EVENTS   events of a source that counts; several: -e A,B\n"
    "              (names: sysinfo system.profile.events)\n"
    "              or @GROUP/NAME[:FIELD], a trace point (trace list)\n"
    "  -c PERIOD   a sample every PERIOD events\n"
    "  --fixed     equal distances between samples; default: random ones, "
    "PERIOD or\n"
    "              1/HZ on average, if the source can\n"
    "  -R          random ones, or nothing\n"
    "  --for SECONDS  duration; default: until the command ends, or ^C\n"
    "  -m SECONDS  size of the buffers, in seconds of samples\n"
    "  -p PERCENT  rows below PERCENT are folded into one (1.0)\n"
    "  --rows N    length of each list, or of the tree; 0: everything (20; a "
    "tree:\n"
    "              what has 0.5 %)\n"
    "  -a          a list for each CPU instead of each program\n"
    "  -o FILE     write perf.data for perf and strobe as well\n"
    "  -q          no report: FILE only\n"
    "  -g          the call tree, callers above their callees; in FILE and in "
    "JSON\n"
    "              each sample with its callers\n"
    "  -G          the inverted call tree: functions above their callers\n"
    "  -g=dwarf[,SIZE]  or -G=dwarf: with SIZE bytes of the stack (8192), for\n"
    "              programs without frame pointers\n"
    "  -g=lbr      or -G=lbr: by the CPU's records of calls (sysinfo\n"
    "              system.profile.callers), for such programs, too\n"
    "  --json      everything, as JSON\n"
    "  --help      this text\n"
    "Inlined functions count as their callers; strobe shows them separately, "
    "from\n"
    "FILE, on the developer's machine.\n"
    "sprofile's own samples are left out. The exit status is the command's "
    "(130 "
    "after\n^C), or 0.\n";

static _Noreturn void bad_usage(void)
{
    fputs(usage_text, stderr);
    exit(USAGE_STATUS);
}

static double percentage(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end != text && *end == '\0' && value >= 0 && value <= 100)
        return value;
    complain("-p %s: not a percentage from 0 to 100", text);
    bad_usage();
}

static void add_names(struct event_names *names, int option, size_t room)
{
    if (!event_names_add(names, option, optarg, room))
        bad_usage();
}

static void take_option(struct settings *s, int c)
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
    case 'u':
        s->seconds =
            number_argument("--for", optarg, 1, SECONDS_MAX, bad_usage);
        break;
    case 't':
        complain(
            "-t %s: to set the duration use --for %s (-t TASK is an option "
            "of profile)",
            optarg, optarg);
        exit(USAGE_STATUS);
    case 'm':
        s->ring_seconds =
            number_argument("-m", optarg, 1, RING_SECONDS_MAX, bad_usage);
        break;
    case 'p':
        s->min_percent = percentage(optarg);
        break;
    case 'N':
        s->rows = number_argument("--rows", optarg, 0, INT_MAX, bad_usage);
        s->rows_given = true;
        break;
    case 'n':
        complain(
            "-n %s: to set the number of rows use --rows %s (-n, of profile, "
            "is a histogram)",
            optarg, optarg);
        exit(USAGE_STATUS);
    case 'a':
        s->per_cpu = true;
        break;
    case 'o':
        s->output = optarg;
        break;
    case 'q':
        s->quiet = true;
        break;
    case 'G':
        s->inverted = true;
        // fall through
    case 'g':
        s->tree = true;
        o->flags |= SPROFILE_O_STACKS;
        break;
    case 'j':
        s->json = true;
        break;
    case 'h':
        fputs(usage_text, stdout);
        exit(EXIT_SUCCESS);
    default: // getopt_long has printed a message
        bad_usage();
    }
}

static void parse(struct settings *s, int argc, char *argv[])
{
    static const struct option options[] = {
        { "fixed", no_argument, NULL, 'f' },
        { "for", required_argument, NULL, 'u' },
        { "json", no_argument, NULL, 'j' },
        { "rows", required_argument, NULL, 'N' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    if (argc > 1 && strcmp(argv[1], "top") == 0) {
        s->live = true;
        argv++;
        argc--;
    }
    // The + stops option parsing at the command's name.
    while (events_chain_option(argv, &c, &s->options, bad_usage) ||
           (c = getopt_long(argc, argv, "+F:s:e:c:Rt:m:p:n:ao:qgGh", options,
                            NULL)) != -1)
        take_option(s, c);
    if (argv[optind])
        s->command = argv + optind;
    if (s->live && (s->json || s->rows == 0 || s->rows > TOP_ROWS)) {
        complain("top shows 1 to %d rows, and no JSON", TOP_ROWS);
        bad_usage();
    }
    if (s->quiet && (!s->output || s->live || s->json)) {
        complain("-q needs -o FILE, and goes with neither top nor --json");
        bad_usage();
    }
    if (s->tree && (s->per_cpu || s->live)) {
        complain("-g and -G do not go with -a and top");
        bad_usage();
    }
    s->tree_limit = tree_limit(s->rows, s->rows_given);
}

int main(int argc, char *argv[])
{
    static struct result result;
    struct settings settings = { .options.flags = SPROFILE_O_RANDOM,
                                 .min_percent = 1.0,
                                 .rows = TOP_ROWS };

    settings.argv = argv;
    parse(&settings, argc, argv);
    if (!events_choose(&result.events, &settings.options, &settings.sources,
                       &settings.events))
        bad_usage();
    if (settings.live && result.events.count > 1) {
        complain("top shows one event");
        bad_usage();
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
