// cprofile [OPTIONS] [COMMAND...]: who called whom in the kernel, and how long
// that took: functions and call paths, by tracing each call; docs/trace.md.
#define _GNU_SOURCE // getopt_long
#include "cprofile.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_DEFAULT 20
#define ROWS_UNSET UINT_MAX
#define MIN_PERCENT 0.5 // of a path in the tree, without -n
#define BYTES_MAX 65536
#define ENTRIES_MAX 65536

static const char usage_lines[] =
    "usage: cprofile [options] [COMMAND [ARGUMENTS...]]\n"
    "       cprofile get [options]    of the trace that runs\n"
    "       cprofile reset            all its counts to 0\n";
static const char options_text[] =
    "Chooses functions of the kernel; without options all:\n"
    "  -k            the kernel's (the default, and so far the only ones)\n"
    "  -F PATTERN    those with such a name, 'sched_*', or file, "
    "'kernel/mm/*'; "
    "after !,\n"
    "                without them, '!lib/*'. Several: -F P -F P, or -F P,P\n"
    "  -Z BYTES      those of BYTES or more\n"
    "  -D DEPTH      up to DEPTH calls within each other (256)\n"
    "  -t TASK       only what this task does, without interrupts\n"
    "  -1            only what COMMAND's own task does, without interrupts\n"
    "  --arcs        counts who calls whom, without times and paths: cheaper\n"
    "  --entries N   memory on each CPU, for N paths or arcs\n"
    "Prints a table of functions and one of their call paths:\n"
    "  -f            only that of functions\n"
    "  -p            only that of paths\n"
    "  -g            the paths as a tree: functions below their callers\n"
    "  -T -c -a -O   sorted by own time (the default), calls, name, or not at "
    "all\n"
    "  -i            with -a, -O and -g: whole paths instead of indentation\n"
    "  -n ROWS       length of each table; 0: everything (20; a tree: what has "
    "0.5 %)\n"
    "  --json        everything, as JSON, in TSC cycles\n"
    "  -o FILE       write it to FILE, for strobe, as well\n"
    "  --help        this text\n"
    "Without COMMAND and -t: until ^C. Functions that have not returned are "
    "marked.\n"
    "The exit status is the command's (130 after ^C), or 0.\n";

static _Noreturn void bad_usage(void)
{
    fputs(usage_lines, stderr);
    fputs("The options: cprofile --help\n", stderr);
    exit(USAGE_STATUS);
}

static void take_patterns(struct settings *s, char *list)
{
    const char *problem = add_patterns(&s->choice, s->patterns, list);

    if (problem) {
        complain("-F: %s", problem);
        bad_usage();
    }
}

static void take_option(struct settings *s, int c)
{
    switch (c) {
    case 'k':
        break;
    case 'F':
        take_patterns(s, optarg);
        break;
    case 'Z':
        s->choice.bytes =
            number_argument("-Z", optarg, 1, BYTES_MAX, bad_usage);
        break;
    case 'D':
        s->options.depth =
            number_argument("-D", optarg, 1, CALLS_DEPTH_MAX, bad_usage);
        break;
    case 't':
        s->options.task = number_argument("-t", optarg, 1, INT_MAX, bad_usage);
        break;
    case '1':
        s->own_only = true;
        break;
    case 'A':
        s->options.mode = CALLS_ARCS;
        break;
    case 'E':
        s->options.entries =
            number_argument("--entries", optarg, 1, ENTRIES_MAX, bad_usage);
        break;
    case 'f':
        s->functions_only = true;
        break;
    case 'p':
        s->paths_only = true;
        break;
    case 'g':
        s->tree = true;
        break;
    case 'T':
        s->sort = CALLS_BY_TIME;
        break;
    case 'c':
        s->sort = CALLS_BY_CALLS;
        break;
    case 'a':
        s->sort = CALLS_BY_NAME;
        break;
    case 'O':
        s->sort = CALLS_IN_ORDER;
        break;
    case 'i':
        s->full_paths = true;
        break;
    case 'n':
        s->rows = number_argument("-n", optarg, 0, INT_MAX, bad_usage);
        break;
    case 'j':
        s->json = true;
        break;
    case 'o':
        s->output = optarg;
        break;
    case 'h':
        fputs(usage_lines, stdout);
        fputs(options_text, stdout);
        exit(EXIT_SUCCESS);
    default: // getopt_long has printed a message
        bad_usage();
    }
}

static void parse(struct settings *s, int argc, char *argv[])
{
    static const struct option options[] = {
        { "arcs", no_argument, NULL, 'A' },
        { "entries", required_argument, NULL, 'E' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    // The + stops option parsing at the command's name.
    while ((c = getopt_long(argc, argv, "+kF:Z:D:t:1fpgTcaOin:o:h", options,
                            NULL)) != -1)
        take_option(s, c);
    s->choice.patterns = s->patterns;
    s->command = argv + optind;
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
    bad_usage();
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
    bad_usage();
}

int main(int argc, char *argv[])
{
    static struct settings s = { .options.mode = CALLS_PATHS,
                                 .rows = ROWS_UNSET };
    const char *verb = argc > 1 ? argv[1] : "";
    int status;

    s.argv = argv;
    if (strcmp(verb, "reset") == 0) {
        if (argc == 2)
            return reset();
        complain("%s: reset takes nothing", argv[2]);
        bad_usage();
    }
    if (strcmp(verb, "get") == 0) {
        argv[1] = argv[0];
        parse(&s, argc - 1, argv + 1);
        check_get(&s);
        status = get(&s);
    } else {
        parse(&s, argc, argv);
        check_run(&s);
        status = run(&s);
    }
    if (fflush(stdout) == 0)
        return status;
    complain("writing the report: %s", strerror(errno));
    return 1;
}
