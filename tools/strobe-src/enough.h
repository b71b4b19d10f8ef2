// Memory that the tool cannot do without.
#pragma once

#include "user/libstrobe/strobe.h"

// Ends the program if malloc and the like have returned no memory.
static inline void *enough(void *memory)
{
    if (!memory)
        fail(1, "not enough memory");
    return memory;
}
