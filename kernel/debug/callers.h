// Who asked: backtraces as small numbers, each different one kept once, so that
// every allocated object can remember its own (checked kernels only).
#pragma once

#include "lib/types.h"

#ifdef CHECKED

#define CALLERS_DEPTH 12u
#define CALLERS_MAX 16384u // numbers are below this

// The return addresses from `frame` on, of the stack of `current` or of this
// CPU's idle thread: how many, at most `most`. It ends at the first frame that
// is not above the last one on that stack (that of a trap from user mode has
// the user's own ebp). Any context.
u32 callers_walk(const u32 *frame, u32 *pcs, u32 most);
// The end of that stack if `at` is on one, or 0.
u32 callers_stack_end(u32 at);

// The number of the caller's backtrace; 0 (nothing is known) once the table is
// full. Any context but NMI; takes no lock.
u16 callers_here(void);
// Its return addresses; how many.
u32 callers_get(u16 number, const u32 **pcs);
// Logs `what`, a line, and the backtrace below it.
void callers_log(const char *what, u16 number);

#endif
