// graph [OPTIONS] [COMMAND...]: prints the calls of the kernel as they happen:
// functions below their callers, switches, interrupts and system calls between;
// docs/trace.md.
#define _GNU_SOURCE // getopt_long
#include "graph.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>

#define BYTES_MAX 65536
#define DEPTH_MAX 256

static const char usage_lines[] =
    "usage: graph [options] [COMMAND [ARGUMENTS...]]\n";
static const char options_text[] =
    "Prints the kernel's calls as they happen: functions, what they call below "
    "them,\n"
    "and context switches, interrupts, faults and system calls between.\n"
    "Chooses functions; without options all:\n"
    "  -F PATTERN    those with such a name, 'sched_*', or file, "
    "'kernel/mm/*'; "
    "after !,\n"
    "                without them, '!lib/*'. Several: -F P -F P, or -F P,P\n"
    "  -Z BYTES      those of BYTES or more\n"
    "  -D DEPTH      up to DEPTH calls within each other (256)\n"
    "  -t TASK       only what this task does\n"
    "  -1            only what COMMAND's own task does\n"
    "  --min-duration NS\n"
    "                only calls that took NS nanoseconds or more\n"
    "  -b KIB        memory for what is not printed yet, on each CPU\n"
    "  -o FILE       to FILE\n"
    "  --help        this text\n"
    "Without COMMAND and -t: until ^C. A duration is the thread's own: without "
    "the\n"
    "time that it was not on a CPU, interrupts, and the tracing itself.\n"
    "The exit status is the command's (130 after ^C), or 0.\n";

static _Noreturn void bad_usage(void)
{
    fputs(usage_lines, stderr);
    fputs("The options: graph --help\n", stderr);
    exit(USAGE_STATUS);
}

static void take_patterns(struct settings *s)
{
    const char *problem = add_patterns(&s->choice, s->patterns, optarg);

    if (!problem)
        return;
    complain("-F: %s", problem);
    bad_usage();
}

static void take_option(struct settings *s, int c)
{
    switch (c) {
    case 'F':
        take_patterns(s);
        break;
    case 'Z':
        s->choice.bytes =
            number_argument("-Z", optarg, 1, BYTES_MAX, bad_usage);
        break;
    case 'D':
        s->options.depth =
            number_argument("-D", optarg, 1, DEPTH_MAX, bad_usage);
        break;
    case 't':
        s->options.task = number_argument("-t", optarg, 1, INT_MAX, bad_usage);
        break;
    case '1':
        s->own_only = true;
        break;
    case 'm':
        s->min_ns =
            number_argument("--min-duration", optarg, 1, UINT32_MAX, bad_usage);
        break;
    case 'b':
        s->options.ring_bytes =
            number_argument("-b", optarg, 8, 16384, bad_usage) * 1024;
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

int main(int argc, char *argv[])
{
    static const struct option options[] = {
        { "min-duration", required_argument, NULL, 'm' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    static struct settings s;
    int c;

    // The + stops option parsing at the command's name.
    while ((c = getopt_long(argc, argv, "+F:Z:D:t:1b:o:h", options, NULL)) !=
           -1)
        take_option(&s, c);
    s.command = argv + optind;
    if (s.own_only && (s.options.task || !s.command[0])) {
        complain("-1 goes with a command, and without -t");
        bad_usage();
    }
    return run(&s);
}
