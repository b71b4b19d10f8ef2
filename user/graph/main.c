// graph [OPTIONS] [COMMAND...]: prints the calls of the kernel as they happen:
// functions below their callers, switches, interrupts and system calls between;
// docs/trace.md.
#include "graph.h"

#include <limits.h>

#define DEPTH_MAX 256

static struct settings s;

static const struct tool_option options[] = {
    { .meaning = "Prints the kernel's calls as they happen: functions, what "
                 "they call below them, and context switches, interrupts, "
                 "faults and system calls between. Chooses functions; without "
                 "options all:" },
    FUNCTION_OPTIONS(s.choice),
    { 'D', NULL, "DEPTH", "Up to DEPTH calls within each other (256)",
      .number = &s.options.depth, .min = 1, .max = DEPTH_MAX },
    { 't', NULL, "TASK", "Only what this task does", .number = &s.options.task,
      .min = 1, .max = INT_MAX },
    { '1', NULL, NULL, "Only what COMMAND's own task does",
      .flag = &s.own_only },
    { 0, "min-duration", "NS", "Only calls that took NS nanoseconds or more",
      .number = &s.min_ns, .min = 1, .max = UINT32_MAX },
    { 'b', NULL, "KIB", "Memory for what is not printed yet, on each CPU",
      .number = &s.options.ring_bytes, .min = 8, .max = 16384, .unit = 1024 },
    { 'o', NULL, "FILE", "To FILE", .text = &s.output },
    { 0 },
};
static const struct tool tool = {
    .usage = "graph [OPTIONS] [COMMAND [ARGUMENTS...]]",
    .options = options,
    .notes = "Without COMMAND and -t: until ^C. A duration is the thread's "
             "own: without the time that it was not on a CPU, interrupts, and "
             "the tracing itself. The exit status is the command's (130 after "
             "^C), or 0.\n",
    .command = true,
};

int main(int argc, char *argv[])
{
    s.command = argv + options_parse(&tool, argc, argv);
    if (s.own_only && (s.options.task || !s.command[0])) {
        complain("-1 goes with a command, and without -t");
        options_wrong(&tool);
    }
    return run(&s);
}
