// What a checked kernel knows of every object of the heap: whether somebody has
// it, who asked for it, who freed it; and poison in what is free. Plain kernels
// know nothing: all of this is empty there.
#pragma once

#include "lib/types.h"

struct slab_cache;

#ifdef CHECKED
#define CHECKED_ON 1

struct track {
    u16 taken_by, freed_by; // callers.h
    u8 live;                // somebody has it
    u8 mark;                // the leak check's:
    u16 pointers;           // to it that were found
};

// Room that a slab needs for each of its objects, at the slab's end.
#define TRACK_SIZE sizeof(struct track)

// A new slab: all its objects are free.
void track_slab(const struct slab_cache *c, void *slab);
void track_taken(const struct slab_cache *c, void *object);
void track_freed(const struct slab_cache *c, void *object);
// A pointer has been taken out of a cache's slot: the leak check must not find
// it there.
#define track_forget(slot) ((slot) = NULL)
// The record of the object at or around `va`, in a slab of this cache; *object
// gets its start. NULL: there is no object there.
struct track *track_find(const struct slab_cache *c, u32 va, u32 *object);

#else
#define CHECKED_ON 0

#define TRACK_SIZE 0u

#define track_forget(slot) ((void)0)
static inline void track_slab(const struct slab_cache *c UNUSED,
                              void *slab UNUSED)
{
}
static inline void track_taken(const struct slab_cache *c UNUSED,
                               void *object UNUSED)
{
}
static inline void track_freed(const struct slab_cache *c UNUSED,
                               void *object UNUSED)
{
}

#endif
