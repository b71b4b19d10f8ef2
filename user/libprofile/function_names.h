// Names of the running kernel's functions: those that are wanted are asked for
// with the first one that is needed. A report has a hundred, of thousands.
#pragma once

#include <stdint.h>

#include <strobe/calls.h>

// The function that contains `address` will be needed. Returns it.
struct calls_name *function_wanted(uint32_t address);
// Its name, valid until the end, or "[unknown]".
const struct calls_name *function_name(uint32_t address);
