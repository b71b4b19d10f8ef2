// Randomness from the CPU.
#pragma once

#include "lib/types.h"

// A word of the CPU's random generator. False: it has none, or none ready.
// Any context.
bool cpu_random_u32(u32 *out);
