// What a checked kernel records of every heap object: whether it is allocated,
// which callers allocated and freed it; and poison in free objects. Empty in
// plain kernels.
#pragma once

#include "lib/types.h"

struct slab_cache;

#ifdef CHECKED
#define CHECKED_ON 1

struct track {
    u16 allocated_by, freed_by; // callers.h
    u8 live;                    // it is allocated
    u8 mark;                    // the leak check's
    u16 pointers;               // the leak check's: pointers found to it
};

// Space that a slab needs for each of its objects, at the slab's end.
#define TRACK_SIZE sizeof(struct track)

// A new slab: all its objects are free.
void track_slab(const struct slab_cache *c, void *slab);
void track_allocated(const struct slab_cache *c, void *object);
void track_freed(const struct slab_cache *c, void *object);
// Clears a cache's slot from which a pointer was taken, so that the leak check
// does not find it there.
#define track_forget(slot) ((slot) = NULL)
// The record of the object that contains `va`, in a slab of this cache; *object
// gets the object's start. NULL: there is no object there.
struct track *track_find(const struct slab_cache *c, u32 va, u32 *object);

#else
#define CHECKED_ON 0

#define TRACK_SIZE 0u

#define track_forget(slot) ((void)0)
static inline void track_slab(const struct slab_cache *c UNUSED,
                              void *slab UNUSED)
{
}
static inline void track_allocated(const struct slab_cache *c UNUSED,
                                   void *object UNUSED)
{
}
static inline void track_freed(const struct slab_cache *c UNUSED,
                               void *object UNUSED)
{
}

#endif
