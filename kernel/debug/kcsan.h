// The race detector, see kcsan.c.
#pragma once

#include "lib/types.h"

#ifdef KCSAN
void kcsan_enable(void); // from here on accesses are watched
void kcsan_nmi(bool in); // an NMI handler begins, or ends, on this CPU
// For a function that may read any memory; a comment there says why.
#define NO_KCSAN __attribute__((no_sanitize_thread))
#else
#define NO_KCSAN
static inline void kcsan_enable(void)
{
}
static inline void kcsan_nmi(bool in)
{
    (void)in;
}
#endif
