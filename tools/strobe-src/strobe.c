// strobe COMMAND [OPTIONS] FILE: analyses, on the developer's machine, files
// written by profile -o, sprofile -o and cprofile -o on Strobe, and receives
// them over a serial line.
#include "strobe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct command {
    const char *name, *what;
    int (*run)(int argc, char *argv[]);
};

static const struct command commands[] = {
    { "report", "Samples by symbol, address, line, thread, CPU or task",
      command_report },
    { "top", "The busiest functions, self and with callees", command_top },
    { "tree", "The tree of calls, from either end", command_tree },
    { "lines", "Samples by line of source", command_lines },
    { "annotate", "The instructions of a function, with their samples",
      command_annotate },
    { "exact", "Proof and owners of instructions counted by tools/vm --oracle",
      command_exact },
    { "counts", "Samples, or exact counts, as tab-separated rows for scripts",
      command_counts },
    { "calls", "Instructions of a typical call, of a file of tools/vm --oracle",
      command_calls },
    { "diff", "Differences between runs, with their significance",
      command_diff },
    { "export", "Files for others: a page (--html), speedscope, gprof, ...",
      command_export },
    { "kallsyms", "The kernel's symbols, for perf diff --kallsyms",
      command_kallsyms },
    { "repair", "Repairs a truncated file", command_repair },
    { "receive", "Receives files from send over a serial line",
      command_receive },
    { "remote", "Drives a session of another machine: top, record, flame",
      command_remote },
    { "sensors", "Shows files of sensors", command_sensors },
    { "trace", "Prints files of trace record: events, and their sums",
      command_trace },
    { "convert", "Makes perf.data of the rings that gdb read out of a kernel",
      command_convert },
};

static void usage(FILE *out)
{
    fputs("Usage: strobe COMMAND [OPTIONS] FILE\n"
          "FILE is from profile -o or sprofile -o (perf.data), or, for report, "
          "tree, diff\nand export, from cprofile -o.\n"
          "Commands:\n",
          out);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(out, "  %-9s  %s\n", commands[i].name, commands[i].what);
    fputs("strobe COMMAND --help lists the options of a command.\n", out);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

int main(int argc, char *argv[])
{
    if (argc < 2) {
        usage(stderr);
        return USAGE_STATUS;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return EXIT_SUCCESS;
    }
    const struct command *command = find(argv[1]);
    if (!command) {
        complain("%s: no such command", argv[1]);
        usage(stderr);
        return USAGE_STATUS;
    }
    argv[1] = argv[0]; // the program's name for getopt
    int status = command->run(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout))
        fail(1, "writing: %s", strerror(errno));
    return status;
}
