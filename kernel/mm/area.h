// Areas of an address space; private to kernel/mm. The space is locked by the
// caller wherever it is an argument.
#pragma once

#include "kernel/mm/aspace.h"

struct frame;

#define MMAP_MIN 0x10000u    // below it nothing is mapped: null pointers fault
#define STACK_GUARD 0x10000u // stays free below a stack
#define STACK_ROOM MIB(8)    // kept free for the stack at the top, at least
#define STACK_ROOM_MAX MIB(1024)

// The area that ends above `addr`: the one that holds it, or the next one.
// NULL: none.
struct area *area_above(struct aspace *as, u32 addr);
struct area *area_at(struct aspace *as, u32 addr);
// True when no area touches [start, end).
bool area_range_free(struct aspace *as, u32 start, u32 end);
// True when areas cover all of [start, end).
bool area_range_full(struct aspace *as, u32 start, u32 end);
// The highest free place for `length` bytes, 0 when there is none.
u32 area_find_gap(struct aspace *as, u32 length);
// What the tree of areas keeps (lib/tree.h): the longest gap of a subtree.
bool area_summarize(struct tree_node *n);
// Where mappings end and the room of the stack begins.
u32 area_mmap_top(const struct aspace *as);

// Pages of the kernel's own, to be read: the vDSO, the rings of profiles.
static inline bool area_is_kernels(const struct area *a)
{
    return a->shared && a->flags & AREA_NO_WRITE;
}

struct area *area_next(const struct aspace *as, const struct area *a);

// A new area with the properties of `like`, which may be on the caller's stack:
// takes its own references. NULL: no memory.
struct area *area_create(const struct area *like);
void area_free(struct area *a); // drops the references; may sleep
void areas_free(struct list *areas);
void area_insert(struct aspace *as, struct area *a);
// Above all others, into a space that no other thread knows yet. The caller
// counts its pages.
void area_append(struct aspace *as, struct area *a);
// Adds the free pages at its start or end.
void area_grow(struct aspace *as, struct area *a, u32 start, u32 end);
// Takes it out of the space, onto `dead`, for areas_free after the unlock.
void area_remove(struct aspace *as, struct area *a, struct list *dead);
// Makes `addr` a boundary between areas. -ENOMEM.
int area_split(struct aspace *as, u32 addr);
// Joins `a` with its neighbours where they continue each other.
void area_merge(struct aspace *as, struct area *a);
// The same at every boundary in [start, end].
void area_merge_range(struct aspace *as, u32 start, u32 end);

// The limits of the space: for so many pages more of all areas; and, if `like`
// is private and `prot` writable, of those that are. 0 or -ENOMEM.
int aspace_check_size(struct aspace *as, u32 pages);
int aspace_check_data(struct aspace *as, const struct area *like, u32 prot,
                      u32 pages);
// Likewise for what is in [start, end), if it becomes writable.
int aspace_check_writable(struct aspace *as, u32 start, u32 end);
// The pages of areas in [start, end).
u32 aspace_pages_within(struct aspace *as, u32 start, u32 end);

// What the page table entry of a page may say at most.
u32 area_page_prot(const struct area *a);
// The index of a page in the file or the shared pages behind the area.
u32 area_page_index(const struct area *a, u32 va);

// Makes the page at `va` usable for `access` (PROT_R, PROT_W or PROT_X), as a
// fault does. Errors as aspace_fault's.
int fault_in(struct aspace *as, u32 va, u32 access);

// Drops all pages in [start, end): TLBs first, frames after.
void unmap_pages(struct aspace *as, u32 start, u32 end);
// Takes all areas out of [start, end), onto `dead`, with their pages. -ENOMEM.
int unmap_range(struct aspace *as, u32 start, u32 end, struct list *dead);
// One byte for each page, 1: in memory. -ENOMEM: not all of it is mapped.
int aspace_resident(struct aspace *as, u32 addr, u32 pages, u8 *out);

// Loads the kernel's tables on every CPU that still has `as` loaded.
void aspace_unload(struct aspace *as);

// Anonymous shared memory: pages that areas of several spaces refer to.
struct shared_pages;
struct shared_pages *shared_pages_create(u32 pages); // refs 1, or NULL
// The kernel's own pages, at these addresses of its image: they outlive it.
struct shared_pages *shared_pages_of_kernel(const void *const *addresses,
                                            u32 pages);
// The pages of memory from vmap_alloc twice, one after the other: what wraps
// around its end lies there in one piece. They live as long as either.
struct shared_pages *shared_pages_of_ring(const void *start, u32 pages);
void shared_pages_ref(struct shared_pages *s);
void shared_pages_unref(struct shared_pages *s);
// The (referenced) frame of a page, made when there is none. -EIO: beyond the
// end, -ENOMEM.
int shared_pages_get(struct shared_pages *s, u32 index, struct frame **out);
