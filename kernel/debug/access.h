// Reports accesses that the compiler does not instrument to the checkers that
// rely on instrumentation: assembly that copies or fills memory calls these.
#pragma once

#include "lib/types.h"

#ifdef KASAN
void __asan_loadN_noabort(u32 addr, u32 size);
void __asan_storeN_noabort(u32 addr, u32 size);
#endif

#ifdef KCSAN
void __tsan_read_range(u32 addr, u32 size);
void __tsan_write_range(u32 addr, u32 size);
#endif

static ALWAYS_INLINE void check_read(const void *p UNUSED, size_t n UNUSED)
{
#ifdef KASAN
    __asan_loadN_noabort((u32)p, n);
#endif
#ifdef KCSAN
    __tsan_read_range((u32)p, n);
#endif
}

static ALWAYS_INLINE void check_write(void *p UNUSED, size_t n UNUSED)
{
#ifdef KASAN
    __asan_storeN_noabort((u32)p, n);
#endif
#ifdef KCSAN
    __tsan_write_range((u32)p, n);
#endif
}
