// The contexts that signal handlers interrupted, for a sample of the current
// thread.
#pragma once

#include "arch/i386/mm/peek.h"
#include <strobe/kbox.h>

// Describes each handler that has not returned, innermost first, on the stack
// that `esp` points into and on others. Returns their number.
u32 unwind_signals(struct user_peek *p, u32 esp,
                   struct sprofile_signal out[SPROFILE_SIGNALS_MAX]);
