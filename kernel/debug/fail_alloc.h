// Memory exhaustion on demand (checked kernels only): the Nth allocation fails,
// to test the error paths.
//
// For the whole machine, from its start: the kernel argument fail_alloc=N, or
// fail_alloc=N,SITE, which counts only allocations with a function SITE among
// the callers, or fail_alloc=N,SITE,once, which counts of those with the same
// callers (callers.h) the first. For one thread: writing "N\n" or "N SITE\n" to
// /dev/failalloc counts that thread's own allocations from then on, except
// those in interrupts. A read ends that and returns "not fired", or "fired" and
// the callers.
#pragma once

#include "lib/types.h"

#ifdef CHECKED

#define FAIL_SITE_MAX 48

struct fail_alloc {
    u32 left;  // the left-th allocation from now fails; 0: none
    u16 fired; // callers.h: the backtrace where it fired
    char site[FAIL_SITE_MAX];
};

extern bool fail_alloc_used; // a failure has been armed at least once

void fail_alloc_start(void); // the kernel argument; once it is parsed
bool fail_alloc_due(void);

// Every allocator calls this first. True: fail as if there were no memory.
static ALWAYS_INLINE bool fail_alloc(void)
{
    return unlikely(READ_ONCE(fail_alloc_used)) && fail_alloc_due();
}

#else

static inline void fail_alloc_start(void)
{
}
static ALWAYS_INLINE bool fail_alloc(void)
{
    return false;
}

#endif
