// The options of Strobe's tools, from a table: what they take, --help and the
// complaints are alike in all of them.
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

#define USAGE_STATUS 2 // of a program whose options were wrong

struct tool_option {
    char letter;          // -x; 0: only the name
    const char *name;     // --name; NULL ends the table
    const char *argument; // what the help calls it; NULL: it takes none
    const char *meaning;
    // What the option sets, where not NULL:
    bool *flag;        // true
    uint32_t *task;    // the argument, which must be a task's number
    const char **text; // the argument as it stands
};

struct tool {
    const char *usage; // behind "Usage: "
    const char *notes; // lines behind the options, or NULL
    const struct tool_option *options;
    // What to say about an argument that is no option; NULL: they are taken.
    const char *no_operands;
};

// Sets what the options say. -h, --help is one of them and ends the program.
// What is wrong is said, and ends it with USAGE_STATUS. The index of the first
// argument that is no option.
int options_parse(const struct tool *tool, int argc, char *argv[]);
// Ends the program with how it is used, after what is wrong has been said.
_Noreturn void options_wrong(const struct tool *tool);
