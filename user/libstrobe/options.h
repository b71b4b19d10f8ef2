// Table-driven option parsing for Strobe's tools. All tools have the same form
// of options, --help and error messages.
//
//     static struct settings s;
//     static const struct tool_option options[] = {
//         { 'a', "all", NULL, "List all threads", .flag = &s.all },
//         { 't', "task", "task_id", "Only this task", .task = &s.task },
//         { 0 },
//     };
//     static const struct tool tool = { .usage = "tasks [OPTIONS]",
//                                       .options = options };
//     options_parse(&tool, argc, argv);
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define USAGE_STATUS 2 // exit status after a usage error

struct tool_option {
    char letter;          // -x; 0: long name only
    const char *name;     // --name; NULL ends the table
    const char *argument; // its name in the help; NULL: no argument
    const char *meaning;
    // The variables that the option sets, unless NULL:
    bool *flag;        // set to true
    uint32_t *task;    // set to the argument, which must be a task id
    const char **text; // set to the argument's text
};

struct tool {
    const char *usage; // follows "Usage: "
    const char *notes; // lines after the options, or NULL
    const struct tool_option *options;
    // Error message for arguments that are not options; NULL: such arguments
    // are accepted.
    const char *no_operands;
};

// Parses the options and sets their variables. -h, --help is added to the
// table; it ends the program. An error ends it with a message and USAGE_STATUS.
// Returns the index of the first argument that is not an option.
int options_parse(const struct tool *tool, int argc, char *argv[]);
// Prints the usage and ends the program, after the caller has printed an error
// message.
_Noreturn void options_wrong(const struct tool *tool);

// For tools with getopt: returns the number that `text`, the argument of
// `option`, is, from `min` to `max`. Otherwise prints a message, calls `wrong`,
// which prints the usage, and ends the program.
uint32_t number_argument(const char *option, const char *text, uint32_t min,
                         uint32_t max, void (*wrong)(void));
