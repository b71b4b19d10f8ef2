// The address checker (`make KASAN=1`), see kasan.c: the interface for owners
// of memory. Without KASAN all of this is empty.
#pragma once

#include "lib/types.h"

struct slab_cache;

// Why memory may not be accessed: the value of its shadow bytes. Those of
// stacks are defined by the compilers.
enum kasan_reason {
    KASAN_STACK_LEFT = 0xf1,
    KASAN_STACK_MIDDLE = 0xf2,
    KASAN_STACK_RIGHT = 0xf3,
    KASAN_STACK_SCOPE = 0xf8,
    KASAN_GLOBAL = 0xf9,
    KASAN_HEAP_REDZONE = 0xfa,
    KASAN_HEAP_FREED = 0xfb,
    KASAN_STACK_FREED = 0xfc, // a whole kernel stack
    KASAN_FRAME_FREED = 0xfd,
    KASAN_ALLOCA_LEFT = 0xca,
    KASAN_ALLOCA_RIGHT = 0xcb,
};

#ifdef KASAN

#define KASAN_ON 1
// For code that reads memory regardless of its owner, or that keeps its own
// data in free memory.
#define NO_KASAN __attribute__((no_sanitize_address))

// Called when the shadow of the direct map (this many bytes) and of vmap is
// mapped.
void kasan_start(u32 direct_map_size);

// Opens or closes memory for access. Addresses and lengths are multiples of 8
// bytes, except for the `n` of kasan_open.
void kasan_open(const void *p, size_t n);
void kasan_close(const void *p, size_t n, enum kasan_reason why);

// The room that an object of `size` bytes takes in a slab, redzones included.
u32 kasan_footprint(u32 size);
void kasan_object_allocated(const struct slab_cache *c, void *object);
// Only the first `size` bytes of the object were requested.
void kasan_object_trim(const struct slab_cache *c, void *object, u32 size);
// Quarantines a freed object; returns the object that may go back to its slab
// instead, or NULL.
void *kasan_quarantine(const struct slab_cache *c, void *object);
// Takes an object from this CPU's quarantine; NULL when that is empty.
void *kasan_release(void);
// How many freed objects of this cache wait in quarantine.
u32 kasan_waiting(const struct slab_cache *c);

#else

#define KASAN_ON 0
#define NO_KASAN

static inline void kasan_start(u32 size UNUSED)
{
}
static inline void kasan_open(const void *p UNUSED, size_t n UNUSED)
{
}
static inline void kasan_close(const void *p UNUSED, size_t n UNUSED,
                               enum kasan_reason why UNUSED)
{
}
static inline u32 kasan_footprint(u32 size)
{
    return size;
}
static inline void kasan_object_allocated(const struct slab_cache *c UNUSED,
                                          void *object UNUSED)
{
}
static inline void kasan_object_trim(const struct slab_cache *c UNUSED,
                                     void *object UNUSED, u32 size UNUSED)
{
}
static inline void *kasan_quarantine(const struct slab_cache *c UNUSED,
                                     void *object)
{
    return object;
}
static inline void *kasan_release(void)
{
    return NULL;
}
static inline u32 kasan_waiting(const struct slab_cache *c UNUSED)
{
    return 0;
}

#endif
