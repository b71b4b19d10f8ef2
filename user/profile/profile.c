// profile [OPTIONS] PROGRAM [ARGUMENTS]: shows where a program spends its time.
//
// Starts the program (or, with -t, takes a running task), samples it until it
// ends, and prints how many samples fell into each of its functions.
#define _GNU_SOURCE // getopt_long
#include "profile.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define USAGE_STATUS 2
#define ROWS_DEFAULT 20
#define ROWS_UNSET UINT_MAX
#define RATE_MAX 100000

static const char usage_text[] =
    "usage: profile [options] PROGRAM [ARGUMENTS...]\n"
    "       profile [options] -t TASK\n"
    "  -F HZ       samples a second on each CPU (1000)\n"
    "  -s SOURCE   what interrupts to take them (the best there is)\n"
    "  -n ROWS     length of the table; 0: everything (20; JSON: everything)\n"
    "  -t TASK     the running task with this id, until it ends or ^C or q\n"
    "  --json      the report as JSON\n"
    "  --help      this text\n"
    "The exit status is the program's; 128 + n when signal n ended it.\n";

static _Noreturn void bad_usage(void)
{
    fputs(usage_text, stderr);
    exit(USAGE_STATUS);
}

static uint32_t number(const char *option, const char *text, uint32_t min,
                       uint32_t max)
{
    char *end;

    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
        value >= min && value <= max)
        return value;
    complain("%s %s: not a number from %u to %u", option, text, min, max);
    bad_usage();
}

static void set_source(struct settings *s, const char *name)
{
    if (strlen(name) >= SPROFILE_SOURCE_NAME) {
        complain("-s %s: no source has so long a name", name);
        bad_usage();
    }
    strcpy(s->options.source, name);
}

static void parse(struct settings *s, int argc, char *argv[])
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    // The + leaves the program's own options to the program.
    while ((c = getopt_long(argc, argv, "+F:s:n:t:h", options, NULL)) != -1) {
        switch (c) {
        case 'F':
            s->options.rate_hz = number("-F", optarg, 1, RATE_MAX);
            break;
        case 's':
            set_source(s, optarg);
            break;
        case 'n':
            s->rows = number("-n", optarg, 0, INT_MAX);
            break;
        case 't':
            s->task = number("-t", optarg, 1, INT_MAX);
            break;
        case 'j':
            s->json = true;
            break;
        case 'h':
            fputs(usage_text, stdout);
            exit(EXIT_SUCCESS);
        default: // getopt_long has said what is wrong
            bad_usage();
        }
    }
    if (s->rows == ROWS_UNSET)
        s->rows = s->json ? 0 : ROWS_DEFAULT;
    s->command = argv + optind;
    if ((s->task != 0) == (s->command[0] != NULL)) {
        complain(s->task != 0 ? "-t TASK and a program do not go together"
                              : "what is to be profiled?");
        bad_usage();
    }
}

int main(int argc, char *argv[])
{
    struct settings settings = { .rows = ROWS_UNSET };
    struct result result = { 0 };

    parse(&settings, argc, argv);
    if (settings.task != 0)
        run_task(&settings, &result);
    else
        run_program(&settings, &result);
    report(&settings, &result);
    counts_free(&result.counts);
    free(result.program);
    if (fflush(stdout) != 0) {
        complain("writing the report: %s", strerror(errno));
        return 1;
    }
    return result.status;
}
