// Who asked: backtraces as small numbers, each different one kept once, so that
// every allocated object can remember its own (checked kernels only).
#pragma once

#include "lib/types.h"

#ifdef CHECKED

#define CALLERS_DEPTH 12u
#define CALLERS_MAX 16384u // numbers are below this

// The number of the caller's backtrace; 0 (nothing is known) once the table is
// full. Any context but NMI; takes no lock.
u16 callers_here(void);
// Its return addresses; how many.
u32 callers_get(u16 number, const u32 **pcs);

#endif
