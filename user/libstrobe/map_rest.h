// A file's mapping has the rest of its last page behind it, which reads as
// zeros. With AddressSanitizer (tests of damaged files) reading that is an
// error, as it is behind memory of malloc.
#pragma once

#include <stddef.h>

#define MAP_PAGE 4096u

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

static inline void forbid_rest(const void *mapped, size_t size)
{
    // What was mapped there before may have been smaller.
    __asan_unpoison_memory_region(mapped, size);
    __asan_poison_memory_region((const char *)mapped + size, -size % MAP_PAGE);
}
#else
static inline void forbid_rest(const void *mapped, size_t size)
{
    (void)mapped, (void)size;
}
#endif
