// Where the parts of a program lie: at random (address space layout
// randomisation), as far as randomize_va_space and its personality allow.
#pragma once

#include "lib/types.h"

// How much each lies apart from its fixed place: bytes, whole pages.
struct layout {
    u32 stack;   // below
    u32 mmap;    // below, in addition
    u32 brk;     // above
    u32 program; // above; of a position-independent one
};

// The level: 0 nothing, 1 all but the heap, 2 all (proc(5)).
u32 layout_level(void);
// `fixed`: nothing, whatever the level is.
void layout_choose(struct layout *out, bool fixed);
