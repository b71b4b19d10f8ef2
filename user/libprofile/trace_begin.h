// Chooses functions and begins a trace of their calls: what the tools that
// trace the kernel have in common. Errors end the program with a message.
#pragma once

#include "functions.h"
#include "user/libstrobe/tracing.h"

// The functions that the running kernel has.
void kernel_functions_read(struct functions *f);
// The addresses of those that are chosen, for struct calls_options: memory that
// the caller frees. *count may be 0. A pattern without a function is an error
// that names the option with this letter.
uint32_t *kernel_functions_choose(const struct function_choice *c, char letter,
                                  uint32_t *count);
// Returns a phone for tracing.
int trace_phone(void);
void trace_begin(int phone, const struct calls_options *o);
