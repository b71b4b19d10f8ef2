// What signal handlers have interrupted, for a sample of the current thread.
#pragma once

#include "arch/i386/mm/peek.h"
#include <strobe/kbox.h>

// Describes each handler that is under way, the innermost first, on the stack
// that esp is on, or others; returns how many.
u32 unwind_signals(struct user_peek *p, u32 esp,
                   struct sprofile_signal out[SPROFILE_SIGNALS_MAX]);
