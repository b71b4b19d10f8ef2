// strobe COMMAND [OPTIONS] FILE: analyses, on the developer's machine, files
// written by profile -o and sprofile -o on Strobe, and receives them over a
// serial line.
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
    { "top", "The busiest functions, alone and with all they call",
      command_top },
    { "tree", "The tree of calls, from either end", command_tree },
    { "lines", "Samples by line of source", command_lines },
    { "annotate", "The instructions of a function, with their samples",
      command_annotate },
    { "diff", "What changed between runs, and whether by chance",
      command_diff },
    { "export", "Files for others: a page (--html), speedscope, gprof, ...",
      command_export },
    { "kallsyms", "The kernel's symbols, for perf diff --kallsyms",
      command_kallsyms },
    { "repair", "Makes a file whole that was cut off", command_repair },
    { "receive", "Takes the files that send sends over a serial line",
      command_receive },
    { "convert", "Makes perf.data of what gdb read out of a hung kernel",
      command_convert },
};

static void usage(FILE *out)
{
    fputs("Usage: strobe COMMAND [OPTIONS] FILE\n"
          "FILE is what profile -o or sprofile -o has written (perf.data).\n"
          "Commands:\n",
          out);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(out, "  %-9s  %s\n", commands[i].name, commands[i].what);
    fputs("strobe COMMAND --help tells the options of a command.\n", out);
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
        complain("%s: there is no such command", argv[1]);
        usage(stderr);
        return USAGE_STATUS;
    }
    argv[1] = argv[0]; // the program's name for getopt
    int status = command->run(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout))
        fail(1, "writing: %s", strerror(errno));
    return status;
}
