// The layout of a program's parts: random (address space layout randomisation),
// as far as randomize_va_space and the task's personality allow.
#pragma once

#include "lib/types.h"

// Distance of each part from its fixed place: bytes, whole pages.
struct layout {
    u32 stack;   // below
    u32 mmap;    // below, in addition
    u32 brk;     // above
    u32 program; // above; for a position-independent program
};

// The level: 0 nothing is random, 1 all but the heap, 2 all (proc(5)).
u32 layout_level(void);
// `fixed`: no randomisation, regardless of the level.
void layout_choose(struct layout *out, bool fixed);
