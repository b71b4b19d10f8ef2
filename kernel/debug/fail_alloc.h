// Memory that runs out on demand (checked kernels only): the Nth allocation
// fails, to see what becomes of that.
//
// For the whole machine, from its start: the kernel argument fail_alloc=N, or
// fail_alloc=N,SITE: only allocations with a function SITE among the callers
// count. For one thread: writing "N\n" or "N SITE\n" to /dev/failalloc counts
// that thread's own allocations from there on, those in interrupts not
// included. A read ends that and says "not fired", or "fired" and the callers.
#pragma once

#include "lib/types.h"

#ifdef CHECKED

#define FAIL_SITE_MAX 48

struct fail_alloc {
    u32 left;  // the allocation after so many less one fails; 0: none
    u16 fired; // callers.h: where it did
    char site[FAIL_SITE_MAX];
};

extern bool fail_alloc_used; // something has been armed, ever

void fail_alloc_start(void); // the kernel argument; once it is parsed
bool fail_alloc_due(void);

// Every allocator asks first. True: pretend that there is no memory.
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
