// schedtest [OPTIONS] [TEST...]: does the scheduler keep its promises?
#include "schedtest.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/libstrobe/strobe.h"

static const char help[] =
    "Usage: schedtest [OPTIONS] [TEST...]: does the scheduler keep its "
    "promises?\n"
    "\n"
    "  fair      equal CPU-bound threads get equal CPU time, to 2 %\n"
    "  latency   an interactive thread beside many CPU-bound ones runs within\n"
    "            2 ms of its wake-up, once it has been seen to sleep\n"
    "  nice      threads get the shares that nice says, to 1 % of the CPU\n"
    "  users     two users, one with many threads, get equal CPU time with "
    "the\n"
    "            kernel argument fair=user; else their threads do, to 1 %\n"
    "  hide      a program that sleeps across the ticks of a clock is seen by\n"
    "            statclock, which ticks at random, and by the ledger\n"
    "\n"
    "Without TEST: all of them. CPU times are those of the kernel's ledger.\n"
    "\n"
    "  -s, --seconds N   how long each measurement takes (10)\n"
    "  -t, --threads N   fair: how many threads (one more than CPUs; then two\n"
    "                    for each CPU, and one more); users: those of one user "
    "(20)\n"
    "  -b, --busy N      latency: CPU-bound threads for each CPU (8)\n"
    "  -h, --help        this text\n"
    "\n"
    "The exit status is 0 if every promise is kept, 1 if one is broken, 2 if\n"
    "it could not be measured.\n";

static int seconds = 10, threads, busy = 8;

static bool run_fair(void)
{
    if (threads > 0)
        return test_fair(threads, seconds);
    int cpus = cpus_online();
    bool ok = test_fair(cpus + 1, seconds);
    return test_fair(2 * cpus + 1, seconds) && ok;
}

static bool run_latency(void)
{
    return test_latency(busy, seconds);
}

static bool run_nice(void)
{
    return test_nice(seconds);
}

static bool run_users(void)
{
    return test_users(threads > 0 ? threads : 20, seconds);
}

static bool run_hide(void)
{
    return test_hide(seconds);
}

static const struct {
    const char *name;
    bool (*run)(void);
} tests[] = {
    { "fair", run_fair },   { "latency", run_latency }, { "nice", run_nice },
    { "users", run_users }, { "hide", run_hide },
};

static bool run(const char *name)
{
    bool ok = true, found = false;
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
        if (!name || strcmp(name, tests[i].name) == 0) {
            ok &= tests[i].run();
            found = true;
        }
    }
    if (!found)
        fail(2, "no test is called %s; see --help", name);
    return ok;
}

static int positive(const char *text)
{
    uint32_t n;
    if (!decimal(text, 1, 100000, &n))
        fail(2, "%s is not a number from 1 to 100000", text);
    return (int)n;
}

int main(int argc, char *argv[])
{
    static const struct option options[] = {
        { "seconds", required_argument, NULL, 's' },
        { "threads", required_argument, NULL, 't' },
        { "busy", required_argument, NULL, 'b' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int option;
    while ((option = getopt_long(argc, argv, "s:t:b:h", options, NULL)) != -1) {
        switch (option) {
        case 's':
            seconds = positive(optarg);
            break;
        case 't':
            threads = positive(optarg);
            break;
        case 'b':
            busy = positive(optarg);
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool ok = true;
    if (optind == argc)
        ok = run(NULL);
    for (int i = optind; i < argc; i++)
        ok &= run(argv[i]);
    return ok ? 0 : 1;
}
