// The running kernel's functions, and the choice of those to trace: messages
// for the user, and the end of the program, if that fails.
#pragma once

#include "functions.h"

#define PATTERNS_MAX 64u

// The functions that the running kernel has, which are read on first use.
const struct functions *kernel_functions(void);
// Adds the patterns of an option -F A,B to `choice`, whose patterns are `list`,
// of PATTERNS_MAX entries. Cuts `text` into them. NULL, or what is wrong.
const char *add_patterns(struct function_choice *choice, const char **list,
                         char *text);
// The entry addresses of the chosen functions, which the caller frees; if
// nothing is chosen by, NULL and CALLS_ALL. That a pattern has no function, or
// that none is chosen, is an error that names the option, a letter.
uint32_t *choose_functions(const struct function_choice *choice, char letter,
                           uint32_t *count);
