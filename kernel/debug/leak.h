// The leak check of checked kernels, see leak.c.
#pragma once

#include "lib/types.h"

#ifdef CHECKED
// Before the machine ends: waits until all other threads sleep (after 5 seconds
// it reports that they do not, and checks anyway), then reports all unreachable
// memory. True if there is some. Interrupts on, may sleep.
bool leak_check(void);
#else
static inline bool leak_check(void)
{
    return false;
}
#endif
