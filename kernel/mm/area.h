// Areas of an address space; private to kernel/mm. The caller holds the lock of
// each address space that it passes.
#pragma once

#include "kernel/mm/aspace.h"
#include "kernel/mm/shared.h"

#define MMAP_MIN 0x10000u    // below it nothing is mapped: null pointers fault
#define STACK_GUARD 0x10000u // bytes kept free below a stack
#define STACK_ROOM MIB(8)    // kept free for the stack at the top, at least
#define STACK_ROOM_MAX MIB(1024)

// The lowest area that ends above `addr`: the area that contains it, or the
// next one. NULL: none.
struct area *area_above(struct aspace *as, u32 addr);
struct area *area_at(struct aspace *as, u32 addr);
// True when no area touches [start, end).
bool area_range_free(struct aspace *as, u32 start, u32 end);
// True when areas cover all of [start, end).
bool area_range_full(struct aspace *as, u32 start, u32 end);
// The start of the highest free range of `length` bytes; 0: none.
u32 area_find_gap(struct aspace *as, u32 length);
// Computes the summary of a tree node (lib/tree.h): the longest gap of its
// subtree. True if it changed.
bool area_summarize(struct tree_node *n);
// The address where mappings end and the space kept for the stack begins.
u32 area_mmap_top(const struct aspace *as);

// Whether the area maps the kernel's own pages, read-only: the vDSO, profile
// rings.
static inline bool area_is_kernels(const struct area *a)
{
    return a->shared && a->flags & AREA_NO_WRITE;
}

struct area *area_next(const struct aspace *as, const struct area *a);

// A new area with the properties of `like`, which may be on the caller's stack.
// Takes its own references. NULL: no memory.
struct area *area_create(const struct area *like);
void area_free(struct area *a); // drops the references; may sleep
void areas_free(struct list *areas);
void area_insert(struct aspace *as, struct area *a);
// Inserts above all other areas, into an address space that no other thread
// uses yet. The caller counts the pages.
void area_append(struct aspace *as, struct area *a);
// Extends the area to [start, end); the added pages must be free.
void area_grow(struct aspace *as, struct area *a, u32 start, u32 end);
// Removes the area from the address space and puts it onto `dead`, for
// areas_free after the unlock.
void area_remove(struct aspace *as, struct area *a, struct list *dead);
// Makes `addr` a boundary between areas. -ENOMEM.
int area_split(struct aspace *as, u32 addr);
// Joins `a` with adjacent areas of the same properties and continuous offsets.
void area_merge(struct aspace *as, struct area *a);
// The same at every boundary in [start, end].
void area_merge_range(struct aspace *as, u32 start, u32 end);

// Whether `pages` more pages stay within the limits of the address space: of
// all areas; and, if `like` is private and `prot` writable, of such areas. 0 or
// -ENOMEM.
int aspace_check_size(struct aspace *as, u32 pages);
int aspace_check_data(struct aspace *as, const struct area *like, u32 prot,
                      u32 pages);
// The same if the private areas in [start, end) become writable.
int aspace_check_writable(struct aspace *as, u32 start, u32 end);
// The number of pages that areas cover in [start, end).
u32 aspace_pages_within(struct aspace *as, u32 start, u32 end);

// The widest protection that a page table entry of the area may have.
u32 area_page_prot(const struct area *a);
// The index of a page in the area's file or shared pages.
u32 area_page_index(const struct area *a, u32 va);

// Makes the page at `va` accessible for `access` (PROT_R, PROT_W or PROT_X), as
// a page fault does. Errors as aspace_fault.
int fault_in(struct aspace *as, u32 va, u32 access);

// Unmaps all pages in [start, end). The TLB shootdown precedes the release of
// the frames.
void unmap_pages(struct aspace *as, u32 start, u32 end);
// Removes all areas in [start, end) with their pages, and puts the areas onto
// `dead`. -ENOMEM.
int unmap_range(struct aspace *as, u32 start, u32 end, struct list *dead);
// Loads the kernel's page tables on every CPU that still has `as` loaded.
void aspace_unload(struct aspace *as);
