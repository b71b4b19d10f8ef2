// Kernel arguments: `name` or `name=value`, separated by blanks.
#pragma once

#include "lib/set.h"

// One known argument. An undeclared argument on the command line causes a
// warning.
struct kernel_arg {
    const char *name;
    const char *help;
    char value[512]; // "" when given without a value
    bool present;
};
// KERNEL_ARG(console, "console=NAME", ...) declares a static arg_console.
#define KERNEL_ARG(id, text)                                           \
    static struct kernel_arg arg_##id = { .name = #id, .help = text }; \
    LINKER_SET_ADD(kernel_args, arg_##id)

// The argument's value as a number; false if it was not given, and, with a
// warning, if the value is no number.
bool kernel_arg_number(const struct kernel_arg *arg, u32 *number);

void cmdline_parse(const char *cmdline);
