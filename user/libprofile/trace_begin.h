// Begins a trace of the kernel's calls. Errors end the program with a message.
#pragma once

#include "user/libstrobe/tracing.h"

// Returns a phone for tracing.
int trace_phone(void);
void trace_begin(int phone, const struct calls_options *o);
