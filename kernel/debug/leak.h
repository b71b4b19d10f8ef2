// The leak check of checked kernels, see leak.c.
#pragma once

#include "lib/types.h"

#ifdef CHECKED
// Before the machine ends: waits until all other threads sleep (if they do not,
// it says so after a while), then reports all memory that nobody can find any
// more. True if there is some. Interrupts on, may sleep.
bool leak_check(void);
#else
static inline bool leak_check(void)
{
    return false;
}
#endif
