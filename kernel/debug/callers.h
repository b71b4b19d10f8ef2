// Backtraces as small numbers, each different one kept once, so that every
// allocated object can record its allocation (checked kernels only).
#pragma once

#include "lib/types.h"

#ifdef CHECKED

#define CALLERS_DEPTH 12u
#define CALLERS_MAX 16384u // numbers are below this

// The return addresses from `frame` on, on the stack of `current` or of this
// CPU's idle thread: at most `most`; returns how many. The walk ends at the
// first frame that is not above the previous one on that stack (the frame of a
// trap from user mode has the user's own ebp). Any context.
u32 callers_walk(const u32 *frame, u32 *pcs, u32 most);
// The end of the one of these stacks that contains `at`, or 0.
u32 callers_stack_end(u32 at);

// The number of the caller's backtrace; 0 (unknown) once the table is full. Any
// context but NMI; takes no lock.
u16 callers_here(void);
// The return addresses of a backtrace; returns how many.
u32 callers_get(u16 number, const u32 **pcs);
// Logs the line `what`, and the backtrace below it.
void callers_log(const char *what, u16 number);

#endif
