// selftest: checks every clock, timer, sample source and CPU.
//
// What the kernel has found out itself, when it started and since, is read from
// sysinfo; the rest is measured here. The status is 1 if anything is wrong.
#include "selftest.h"

#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool only_wrong;

static const struct tool_option options[] = {
    { 'w', "wrong", NULL, "Print only what is wrong", .flag = &only_wrong },
    { 0 },
};
static const struct tool tool = {
    .usage = "selftest [OPTIONS]",
    .notes =
        "Checks the CPUs, their timers, the clocks against each other, the "
        "sample\nsources, sleeps, and the kernel's accounts. A row says "
        "\"ok\", \"not there\"\n(the machine has none, or it is not for "
        "this use), or \"wrong\". It takes\nabout 5 s and some 0.1 s for "
        "each CPU. Sample sources are tried by root only.\n\nExit status: 0; "
        "1: something is wrong; 2: wrong usage.\n",
    .options = options,
    .no_operands = "selftest takes no names",
};

static unsigned counts[VERDICTS];

void report(enum verdict verdict, const char *name, const char *format, ...)
{
    static const char *const names[VERDICTS] = { "ok", "not there", "WRONG" };
    va_list args;

    counts[verdict]++;
    if (only_wrong && verdict != WRONG)
        return;
    printf("%-16s  %-9s  ", name, names[verdict]);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    options_parse(&tool, argc, argv);
    sysinfo_frequency(); // ends if this is another kernel
    if (!only_wrong)
        printf("%-16s  %-9s  %s\n", "check", "result", "how, or why not");
    check_cpus();
    check_tsc();
    check_cpu_timers();
    check_time();
    check_clocks();
    check_timers();
    check_sources();
    check_books();
    check_errors();
    printf("%u ok, %u not there, %u wrong\n", counts[OK], counts[NOT_THERE],
           counts[WRONG]);
    int status = sysinfo_finish();
    return counts[WRONG] > 0 ? 1 : status;
}
