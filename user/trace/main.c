// trace list | record | snapshot | report | summary: what happened in the
// kernel, in order; docs/trace.md.
#include "trace.h"

#include "user/libstrobe/sensor_recorder.h"
#include "user/libtrace/report.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX 65536

static const char usage_text[] =
    "usage: trace list\n"
    "       trace record [OPTIONS] [COMMAND [ARGUMENTS...]]\n"
    "       trace snapshot\n"
    "       trace report [-t THREAD] [-c CPU] [FILE]\n"
    "       trace summary [FILE]\n";
static const char options_text[] =
    "Records events of the kernel in a file, and prints it: context switches,\n"
    "system calls, interrupts, page faults and more, of all tasks; with -s "
    "also\n"
    "what programs and the kernel put into sensors; with -F or -Z calls of\n"
    "functions, and of the other events only sched/switch and those of -e.\n"
    "record:\n"
    "  -e EVENT,...  those named GROUP/NAME, GROUP or * (trace list; all)\n"
    "  -F PATTERN,...  calls of the kernel's functions named like this, "
    "'sched_*',\n"
    "                or of such a file, 'kernel/mm/*'; after !, without them\n"
    "  -Z BYTES      calls of functions of BYTES or more\n"
    "  -t TASK       only what this task does\n"
    "  -1            only what COMMAND's own task does\n"
    "  -b KIB        memory for what is not written yet, on each CPU\n"
    "  -s SENSOR,... with these sensors: events of lists and rings, and "
    "values;\n"
    "                paths below /sensors, folders, * and ? (sensors lists "
    "them)\n"
    "  --counters EVENT,EVENT  with sched/pmc, which counts these (cycles,\n"
    "                instructions; docs/counters.md) for each thread that "
    "runs\n"
    "  -i SECONDS    between samples of the sensors (0.001 to 3600; 0.1)\n"
    "  -o FILE       to FILE (" TRACE_FILE_NAME ")\n"
    "  --flight SEC  only the last SEC seconds, in memory: written at the "
    "end,\n"
    "                and by trace snapshot; -b: at most so much on each CPU\n"
    "Without COMMAND and -t it records until ^C. Its exit status is the "
    "command's\n(130 after ^C), or 0.\n"
    "snapshot: what a flight has now, in its FILE.1, FILE.2...; it goes on.\n"
    "report: a line for each event; -t, -c: of this thread, on this CPU.\n"
    "summary: counts, rates, and times of threads, calls and interrupts; how "
    "often\n"
    "each function was called.\n";

static _Noreturn void bad_usage(void)
{
    fputs(usage_text, stderr);
    fputs("The options: trace --help\n", stderr);
    exit(USAGE_STATUS);
}

static uint32_t number(const char *option, uint32_t min, uint32_t max)
{
    return number_argument(option, optarg, min, max, bad_usage);
}

static int list(int argc)
{
    if (argc != 1)
        bad_usage();
    for (uint32_t i = 0; i < TRACE_POINTS; i++)
        printf("%-18s %s\n", trace_point_name(i), trace_point_when(i));
    return 0;
}

// --- record -----------------------------------------------------------------

static uint32_t chosen_points(char *names)
{
    uint32_t points = 0;

    for (char *p = strtok(names, ","); p; p = strtok(NULL, ",")) {
        uint32_t bits = trace_points_named(p);
        if (!bits) {
            complain("-e %s: there is no such event", p);
            trace_points_print_near(p, stderr);
            exit(1);
        }
        points |= bits;
    }
    if (!points) {
        complain("-e: which events?");
        bad_usage();
    }
    return points;
}

static void take_patterns(struct settings *s)
{
    const char *problem = add_patterns(&s->choice, s->patterns, optarg);

    s->functions = true;
    if (!problem)
        return;
    complain("-F: %s", problem);
    bad_usage();
}

// Two names, separated by a comma.
static void take_counters(struct settings *s)
{
    char(*names)[TRACE_COUNTER_NAME] = s->options.counters;
    const char *comma = strchr(optarg, ',');
    size_t first = comma ? (size_t)(comma - optarg) : 0;

    if (!first || first >= sizeof(names[0]) || !comma[1] ||
        strlen(comma + 1) >= sizeof(names[1]) || strchr(comma + 1, ',')) {
        complain("--counters %s: not two events, such as cycles,cache-misses",
                 optarg);
        bad_usage();
    }
    snprintf(names[0], sizeof(names[0]), "%.*s", (int)first, optarg);
    snprintf(names[1], sizeof(names[1]), "%s", comma + 1);
}

// sched/pmc is asked for by its name, or by that of what it counts.
static void choose_counters(struct trace_options *o)
{
    if (o->counters[0][0]) {
        o->points |= 1u << TRACE_sched_pmc;
    } else if (o->points & 1u << TRACE_sched_pmc) {
        strcpy(o->counters[0], "cycles");
        strcpy(o->counters[1], "instructions");
    }
}

static void take_option(struct settings *s, int c)
{
    switch (c) {
    case 'e':
        s->options.points |= chosen_points(optarg);
        break;
    case 'F':
        take_patterns(s);
        break;
    case 'Z':
        s->choice.bytes = number("-Z", 1, BYTES_MAX);
        s->functions = true;
        break;
    case 't':
        s->options.task = number("-t", 1, INT_MAX);
        break;
    case '1':
        s->own_only = true;
        break;
    case 'b':
        s->options.ring_bytes = number("-b", 8, 16384) * 1024;
        break;
    case 's':
        s->sensors = optarg;
        break;
    case 'i':
        s->interval_ns = recorder_duration(optarg);
        if (s->interval_ns)
            break;
        complain("-i %s: not a number of seconds from 0.001 to 3600", optarg);
        bad_usage();
    case 'o':
        s->output = optarg;
        break;
    case 'c':
        take_counters(s);
        break;
    case 'f':
        s->options.flight_ms = number("--flight", 1, 86400) * 1000;
        break;
    default: // getopt has printed a message
        bad_usage();
    }
}

static int record_command(int argc, char *argv[])
{
    static const struct option names[] = {
        { "flight", required_argument, NULL, 'f' },
        { "counters", required_argument, NULL, 'c' },
        { 0 }
    };
    static struct settings s = { .output = TRACE_FILE_NAME,
                                 .interval_ns = RECORDER_INTERVAL_NS };
    int c;

    // The + stops option parsing at the command's name.
    while ((c = getopt_long(argc, argv, "+e:F:Z:t:1b:s:i:o:", names, NULL)) !=
           -1)
        take_option(&s, c);
    s.command = argv + optind;
    if (s.functions) // which threads call them
        s.options.points |= trace_points_named("sched/switch");
    else if (!s.options.points)
        s.options.points = trace_points_named("*");
    choose_counters(&s.options);
    if (s.own_only && (s.options.task || !s.command[0])) {
        complain("-1 goes with a command, and without -t");
        bad_usage();
    }
    return record(&s);
}

// --- report and summary -----------------------------------------------------

static int show(int argc, char *argv[], bool summary)
{
    struct trace_choice choice = { 0 };
    static struct trace_file f;
    int c;

    while ((c = getopt(argc, argv, summary ? "" : "t:c:")) != -1) {
        if (c == 't') {
            choice.thread = number("-t", 0, INT_MAX);
            choice.by_thread = true;
        } else if (c == 'c') {
            choice.cpu = number("-c", 0, TRACE_CPUS_MAX - 1);
            choice.by_cpu = true;
        } else {
            bad_usage();
        }
    }
    if (argc - optind > 1)
        bad_usage();
    const char *path = optind < argc ? argv[optind] : TRACE_FILE_NAME;
    const char *problem = trace_file_open(&f, path);
    if (!problem) {
        problem = summary ? trace_summary(stdout, &f)
                          : trace_report(stdout, &f, &choice);
        trace_file_close(&f);
    }
    if (problem)
        fail(1, "%s: %s", path, problem);
    if (fflush(stdout) != 0 || ferror(stdout))
        fail(1, "writing the text: %s", strerror(errno));
    return 0;
}

int main(int argc, char *argv[])
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
        fputs(usage_text, stdout);
        fputs(options_text, stdout);
        return 0;
    }
    if (strcmp(what, "list") == 0)
        return list(argc - 1);
    if (strcmp(what, "record") == 0)
        return record_command(argc - 1, argv + 1);
    if (strcmp(what, "snapshot") == 0 && argc == 2)
        return ask_for_snapshots();
    if (strcmp(what, "report") == 0 || strcmp(what, "summary") == 0)
        return show(argc - 1, argv + 1, strcmp(what, "summary") == 0);
    if (what[0])
        complain("%s: no such command", what);
    bad_usage();
}
