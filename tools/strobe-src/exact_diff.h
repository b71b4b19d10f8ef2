// strobe exact diff: the change between two files of the oracle.
#pragma once

#include "strobe.h"

// Prints which functions and which paths execute more or fewer instructions.
// The sum of all rows is the change of the total.
void exact_diff(struct profile *before, struct profile *after, uint32_t rows);
