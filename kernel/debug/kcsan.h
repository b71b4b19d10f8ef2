// The race detector, see kcsan.c.
#pragma once

#ifdef KCSAN
void kcsan_enable(void); // from here on accesses are watched
// For a function that reads whatever is there, and says why it may.
#define NO_KCSAN __attribute__((no_sanitize_thread))
#else
#define NO_KCSAN
static inline void kcsan_enable(void)
{
}
#endif
