// schedtest [OPTIONS] [TEST...]: does the scheduler keep its promises?
#include "schedtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"

#define MOST 100000

static uint32_t seconds = 10, threads, busy = 8;

static const struct tool_option options[] = {
    { 's', "seconds", "N", "How long each measurement takes (10)",
      .number = &seconds, .min = 1, .max = MOST },
    { 't', "threads", "N",
      "fair: how many threads (one more than CPUs; then two for each CPU, and "
      "one more); users: those of one user (20)",
      .number = &threads, .min = 1, .max = MOST },
    { 'b', "busy", "N", "latency: CPU-bound threads for each CPU (8)",
      .number = &busy, .min = 1, .max = MOST },
    { 0 },
};
static const struct tool tool = {
    .usage = "schedtest [OPTIONS] [TEST...]",
    .options = options,
    .notes =
        "Does the scheduler keep its promises? TEST (default: all of them):\n"
        "  fair      equal CPU-bound threads get equal CPU time, to 2 %\n"
        "  latency   an interactive thread beside many CPU-bound ones runs "
        "within\n"
        "            2 ms of its wake-up, once it has been seen to sleep\n"
        "  nice      threads get the shares that nice says, to 1 % of the CPU\n"
        "  users     two users, one with many threads, get equal CPU time with "
        "the\n"
        "            kernel argument fair=user; else their threads do, to 1 %\n"
        "  hide      a program that sleeps across the ticks of a clock is seen "
        "by\n"
        "            statclock, which ticks at random, and by the ledger\n"
        "CPU times are those of the kernel's ledger. The exit status is 0 if "
        "every promise is kept, 1 if one is broken, 2 if it could not be "
        "measured.\n",
};

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

int main(int argc, char *argv[])
{
    int first = options_parse(&tool, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool ok = true;
    if (first == argc)
        ok = run(NULL);
    for (int i = first; i < argc; i++)
        ok &= run(argv[i]);
    return ok ? 0 : 1;
}
