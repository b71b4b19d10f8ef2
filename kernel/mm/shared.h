// Anonymous shared memory: pages that areas of several spaces refer to.
#pragma once

#include "lib/types.h"

struct frame;
struct shared_pages;

struct shared_pages *shared_pages_create(u32 pages); // refs 1, or NULL
// Maps the kernel's own pages, at these addresses of its image. The frames
// outlive it.
struct shared_pages *shared_pages_of_kernel(const void *const *addresses,
                                            u32 pages);
// The pages of a ring from vmap_alloc, twice in a row: an entry that wraps
// around the ring's end is contiguous there. The frames live as long as either
// mapping.
struct shared_pages *shared_pages_of_ring(const void *start, u32 pages);
void shared_pages_ref(struct shared_pages *s);
void shared_pages_unref(struct shared_pages *s);
// The frame of a page, with a reference for the caller; allocated if there is
// none. -EIO: beyond the end, -ENOMEM.
int shared_pages_get(struct shared_pages *s, u32 index, struct frame **out);
