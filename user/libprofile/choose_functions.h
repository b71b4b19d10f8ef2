// The running kernel's functions, and the choice of those to trace: messages
// for the user, and the end of the program, if that fails.
#pragma once

#include "functions.h"

// The functions that the running kernel has, which are read on first use.
const struct functions *kernel_functions(void);
// Adds the patterns of an option -F A,B to `choice`, a struct function_choice,
// and cuts `text` into them. NULL, or what is wrong.
const char *take_patterns(void *choice, char *text);
// The entry addresses of the chosen functions, which the caller frees; if
// nothing is chosen by, NULL and CALLS_ALL. That a pattern has no function, or
// that none is chosen, is an error that names the option, a letter.
uint32_t *choose_functions(const struct function_choice *choice, char letter,
                           uint32_t *count);

#define FUNCTION_BYTES_MAX 65536

// Rows of a table of options: which functions `c`, a struct function_choice,
// chooses.
#define FUNCTION_OPTIONS(c)                                                  \
    { 'F',                                                                   \
      NULL,                                                                  \
      "PATTERN",                                                             \
      "Those with such a name, 'sched_*', or file, 'kernel/mm/*'; after !, " \
      "without them, '!lib/*'. Several: -F P -F P, or -F P,P",               \
      .take = take_patterns,                                                 \
      .arg = &(c) },                                                         \
    {                                                                        \
        'Z', NULL, "BYTES", "Those of BYTES or more",                        \
            .number = &(c).bytes, .min = 1, .max = FUNCTION_BYTES_MAX        \
    }
