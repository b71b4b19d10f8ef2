// Names of the running kernel's functions, each asked for when it is first
// needed: a report has a hundred, of thousands.
#pragma once

#include <stdint.h>

// The name, valid until the end, of the function that contains `address`, or
// "[unknown]".
const char *function_name(uint32_t address);
