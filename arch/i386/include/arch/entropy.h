// Randomness from the CPU.
#pragma once

#include "lib/types.h"

// Reads a word from the CPU's random number generator. False: there is none, or
// it has no number ready. Any context.
bool cpu_random_u32(u32 *out);
