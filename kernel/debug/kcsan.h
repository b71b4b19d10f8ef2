// The race detector, see kcsan.c.
#pragma once

#ifdef KCSAN
void kcsan_enable(void); // from here on accesses are watched
#else
static inline void kcsan_enable(void)
{
}
#endif
