// Table-driven option parsing for Strobe's tools. All tools have the same form
// of options, --help and error messages.
//
//     static struct settings s = { .rows = 20 };
//     static const struct tool_option options[] = {
//         { 'a', "all", NULL, "List all threads", .flag = &s.all },
//         { 't', "task", "task_id", "Only this task", .task = &s.task },
//         { 'n', NULL, "ROWS", "Length of the table (20)", .number = &s.rows,
//           .min = 1, .max = 1000 },
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
    char letter;      // -x; 0: long name only
    const char *name; // --name; NULL: letter only
    // Its name in the help; NULL: no argument. "[=NAME]": it may follow the
    // letter as -x=NAME; only .take is called then, without one with NULL.
    const char *argument;
    // For the help, which breaks the lines; NULL: not in the help. Without a
    // letter and a name it is the title of the options that follow.
    const char *meaning;
    // The variables that the option sets, unless NULL:
    bool *flag;        // set to true
    uint32_t *task;    // set to the argument, which must be a task id
    const char **text; // set to the argument's text
    // Set to the argument, a number from `min` to `max`, times `unit` unless
    // that is 0. Without an argument it is set to `value`.
    uint32_t *number, min, max, unit, value;
    // Called for all else. Returns NULL, or what is wrong with the argument.
    const char *(*take)(void *arg, char *argument);
    void *arg;
};

struct tool {
    // Follows "Usage: ". It begins with the command's name; " [" ends that.
    const char *usage;
    const char *notes; // lines after the options, or NULL
    const struct tool_option *options;
    // Error message for arguments that are not options; NULL: such arguments
    // are accepted.
    const char *no_operands;
    // The first argument that is not an option is a command: what follows it
    // is the command's.
    bool command;
};

// Parses the options and sets their variables. -h, --help is added to the
// table; it ends the program. An error ends it with a message and USAGE_STATUS.
// Returns the index of the first argument that is not an option.
int options_parse(const struct tool *tool, int argc, char *argv[]);
// Prints the usage and ends the program, after the caller has printed an error
// message. If the help is too long for a screen with the message, the options
// are left out.
_Noreturn void options_wrong(const struct tool *tool);
