// The leak check of checked kernels, see leak.c.
#pragma once

#include "lib/types.h"

#ifdef CHECKED
// Before the machine ends: stops the other CPUs for good, then reports all
// memory that nobody can find any more. True if there is some.
bool leak_check(void);
#else
static inline bool leak_check(void)
{
    return false;
}
#endif
