// The areas of an address space: finding, placing, splitting and joining them.
//
// Areas are a sorted list with a hint to the last one found: enough for most
// programs, which have up to fifty areas and use the same few again and again.
// Above LISTED_AREAS, a balanced tree is added over the list. Each node keeps
// the longest gap below an area of its subtree, so that a free range is found
// in O(log n) steps, as an area is. The tree is kept until the last area is
// removed.

#include "kernel/mm/area.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/file_pages.h"
#include "kernel/mm/heap.h"

// Up to here, walking the list is cheaper than keeping a tree.
#define LISTED_AREAS 64u

SLAB_CACHE(area_cache, struct area);

static struct area *area_of(const struct list *node)
{
    return list_entry(node, struct area, node);
}

static struct area *in_tree(struct tree_node *n)
{
    return n ? container_of(n, struct area, tree_node) : NULL;
}

struct area *area_next(const struct aspace *as, const struct area *a)
{
    return a->node.next == &as->areas ? NULL : area_of(a->node.next);
}

static struct area *area_prev(const struct aspace *as, const struct area *a)
{
    return a->node.prev == &as->areas ? NULL : area_of(a->node.prev);
}

static struct area *search_list(const struct aspace *as, u32 addr)
{
    struct area *a = as->hint, *prev;
    if (!a) {
        if (list_empty(&as->areas))
            return NULL;
        a = area_of(as->areas.next);
    }
    if (a->end > addr) {
        while (a->start > addr && (prev = area_prev(as, a)) && prev->end > addr)
            a = prev;
    } else {
        while (a && a->end <= addr)
            a = area_next(as, a);
    }
    return a;
}

static struct area *search_tree(const struct aspace *as, u32 addr)
{
    struct area *found = NULL, *a = in_tree(as->area_tree.root);
    while (a) {
        bool above = a->end > addr;
        if (above)
            found = a;
        if (above && a->start <= addr)
            break;
        a = in_tree(a->tree_node.child[above ? TREE_LEFT : TREE_RIGHT]);
    }
    return found;
}

struct area *area_above(struct aspace *as, u32 addr)
{
    mutex_assert_held(&as->lock);
    struct area *a = as->hint;
    if (a && a->start <= addr && addr < a->end)
        return a;
    a = as->area_tree.root ? search_tree(as, addr) : search_list(as, addr);
    if (a)
        as->hint = a;
    return a;
}

NOTRACE struct area *area_at(struct aspace *as, u32 addr)
{
    mutex_assert_held(&as->lock);
    struct area *a = area_above(as, addr);
    return a && a->start <= addr ? a : NULL;
}

bool area_range_free(struct aspace *as, u32 start, u32 end)
{
    mutex_assert_held(&as->lock);
    assert(start <= end);
    struct area *a = area_above(as, start);
    return !a || a->start >= end;
}

bool area_range_full(struct aspace *as, u32 start, u32 end)
{
    mutex_assert_held(&as->lock);
    assert(start <= end);
    struct area *a = area_at(as, start);
    while (a && a->end < end) {
        struct area *next = area_next(as, a);
        if (!next || next->start != a->end)
            return false;
        a = next;
    }
    return a != NULL;
}

// --- free ranges ------------------------------------------------------------

static u32 longest_gap(struct tree_node *n)
{
    return n ? in_tree(n)->longest_gap : 0;
}

bool area_summarize(struct tree_node *n)
{
    struct area *a = in_tree(n);
    u32 old = a->longest_gap, longest = a->gap;
    longest = MAX(longest, longest_gap(n->child[TREE_LEFT]));
    longest = MAX(longest, longest_gap(n->child[TREE_RIGHT]));
    a->longest_gap = longest;
    return longest != old;
}

// The end of the gap below an area. A stack's guard is not part of the gap.
static u32 gap_end(const struct area *a)
{
    return a->flags & AREA_STACK ? a->start - MIN(a->start, STACK_GUARD)
                                 : a->start;
}

static void measure_gap(const struct aspace *as, struct area *a)
{
    const struct area *prev = area_prev(as, a);
    u32 start = prev ? prev->end : MMAP_MIN, end = gap_end(a);
    a->gap = end > start ? end - start : 0;
}

// Updates the tree after a change of the gap below `above`. NULL: the gap above
// all areas, which is not in the tree.
static void gap_changed(struct aspace *as, struct area *above)
{
    if (!above || !as->area_tree.root)
        return;
    measure_gap(as, above);
    tree_changed(&as->area_tree, &above->tree_node);
}

// The highest free range of `length` bytes in the gaps of a subtree, below
// `ceiling`; returns its start, 0: none. A gap that is long enough may extend
// above the ceiling. Only one gap does so in part, so at most one descent of
// the tree fails.
static u32 highest_place(struct tree_node *n, u32 length, u32 ceiling)
{
    for (; longest_gap(n) >= length; n = n->child[TREE_LEFT]) {
        struct area *a = in_tree(n);
        u32 end = gap_end(a), start = end - a->gap, place = 0;
        if (a->end < ceiling)
            place = highest_place(n->child[TREE_RIGHT], length, ceiling);
        if (place)
            return place;
        end = MIN(end, ceiling);
        if (a->gap >= length && start < end && end - start >= length)
            return end - length;
    }
    return 0;
}

u32 area_mmap_top(const struct aspace *as)
{
    u32 room = MIN(MAX(READ_ONCE(as->stack_limit), STACK_ROOM), STACK_ROOM_MAX);
    return USER_END - ALIGN_UP(room, PAGE_SIZE) - STACK_GUARD - as->mmap_shift;
}

u32 area_find_gap(struct aspace *as, u32 length)
{
    mutex_assert_held(&as->lock);
    // First the gap above all areas, which belongs to no node.
    u32 ceiling = area_mmap_top(as);
    const struct list *node = as->areas.prev;
    for (;; node = node->prev) {
        bool bottom = node == &as->areas;
        u32 floor = bottom ? MMAP_MIN : area_of(node)->end;
        if (floor < ceiling && ceiling - floor >= length)
            return ceiling - length;
        if (bottom)
            return 0;
        if (as->area_tree.root)
            return highest_place(as->area_tree.root, length, ceiling);
        ceiling = MIN(ceiling, gap_end(area_of(node)));
    }
}

// --- one area ---------------------------------------------------------------

// Writes to the area go to the file, even after its descriptor is closed.
static bool writes_to_file(const struct area *a)
{
    return a->vnode && a->flags & AREA_SHARED && !(a->flags & AREA_NO_WRITE);
}

struct area *area_create(const struct area *like)
{
    assert(!like->vnode || !like->shared);
    struct area *a = slab_alloc(&area_cache);
    if (!a)
        return NULL;
    *a = *like;
    list_init(&a->node);
    if (a->vnode)
        vnode_ref(a->vnode);
    if (writes_to_file(a)) {
        int err = vnode_begin_writing(a->vnode);
        assert(!err); // the creator has the file open, or such an area
    }
    if (a->shared)
        shared_pages_ref(a->shared);
    return a;
}

void area_free(struct area *a)
{
    assert(!a->vnode || !a->shared);
    if (writes_to_file(a))
        vnode_end_writing(a->vnode);
    if (a->vnode)
        vnode_unref(a->vnode);
    if (a->shared)
        shared_pages_unref(a->shared);
    slab_free(&area_cache, a);
}

void areas_free(struct list *areas)
{
    while (!list_empty(areas)) {
        struct area *a = area_of(areas->next);
        list_remove(&a->node);
        area_free(a);
    }
}

// --- areas in their address space -------------------------------------------

static void put_into_tree(struct aspace *as, struct area *a, struct area *above)
{
    struct area *prev = area_prev(as, a);
    measure_gap(as, a);
    tree_insert(&as->area_tree, &a->tree_node, prev ? &prev->tree_node : NULL,
                above ? &above->tree_node : NULL);
    gap_changed(as, above);
}

static void put_below(struct aspace *as, struct area *a, struct area *above)
{
    list_push_back(above ? &above->node : &as->areas, &a->node);
    ADD_ONCE(as->area_count, 1);
    if (as->area_tree.root) {
        put_into_tree(as, a, above);
    } else if (as->area_count > LISTED_AREAS) {
        list_for_each(a, &as->areas, node)
            put_into_tree(as, a, NULL);
    }
}

static void take_out(struct aspace *as, struct area *a)
{
    struct area *next = area_next(as, a);
    assert_checked(as->area_count);
    list_remove(&a->node);
    ADD_ONCE(as->area_count, -1u);
    if (as->area_tree.root)
        tree_remove(&as->area_tree, &a->tree_node);
    gap_changed(as, next);
}

void area_insert(struct aspace *as, struct area *a)
{
    mutex_assert_held(&as->lock);
    struct area *above = area_above(as, a->start);
    assert(!above || above->start >= a->end);
    put_below(as, a, above);
    ADD_ONCE(as->virtual_pages, (a->end - a->start) / PAGE_SIZE);
    as->hint = a;
}

void area_append(struct aspace *as, struct area *a)
{
    assert(list_empty(&as->areas) || area_of(as->areas.prev)->end <= a->start);
    put_below(as, a, NULL);
}

void area_grow(struct aspace *as, struct area *a, u32 start, u32 end)
{
    mutex_assert_held(&as->lock);
    assert(start <= a->start && end >= a->end);
    assert(area_range_free(as, start, a->start));
    assert(area_range_free(as, a->end, end));
    ADD_ONCE(as->virtual_pages,
             (a->start - start + (end - a->end)) / PAGE_SIZE);
    a->start = start;
    a->end = end;
    gap_changed(as, a);
    gap_changed(as, area_next(as, a));
}

void area_remove(struct aspace *as, struct area *a, struct list *dead)
{
    mutex_assert_held(&as->lock);
    if (as->hint == a)
        as->hint = area_prev(as, a);
    take_out(as, a);
    list_push_back(dead, &a->node);
    WRITE_ONCE(as->virtual_peak, aspace_peak_virtual(as));
    ADD_ONCE(as->virtual_pages, -((a->end - a->start) / PAGE_SIZE));
}

static bool has_pages_behind(const struct area *a)
{
    return a->vnode || a->shared;
}

int area_split(struct aspace *as, u32 addr)
{
    mutex_assert_held(&as->lock);
    struct area *a = area_at(as, addr);
    if (!a || a->start == addr)
        return 0;
    struct area *upper = area_create(a);
    if (!upper)
        return -ENOMEM;
    if (has_pages_behind(a))
        upper->offset += addr - a->start;
    upper->start = addr;
    a->end = addr;
    // Only the lower part keeps growing down: the upper part is no stack.
    if (a->flags & AREA_STACK)
        upper->flags &= ~AREA_STACK;
    struct area *above = area_next(as, a);
    put_below(as, upper, above);
    return 0;
}

static bool continues(const struct area *a, const struct area *b)
{
    if (a->end != b->start || a->prot != b->prot || a->vnode != b->vnode ||
        a->shared != b->shared)
        return false;
    // A stack may absorb an area that was split off above it.
    if ((a->flags & ~AREA_STACK) != b->flags)
        return false;
    return !has_pages_behind(a) || a->offset + (a->end - a->start) == b->offset;
}

// Joins `b`, the next area, into `a`. The references that `b` drops are not the
// last ones: `a` holds the same.
static void join(struct aspace *as, struct area *a, struct area *b)
{
    mutex_assert_held(&as->lock);
    assert(a->end == b->start);
    a->end = b->end;
    take_out(as, b);
    if (as->hint == b)
        as->hint = a;
    area_free(b);
}

void area_merge(struct aspace *as, struct area *a)
{
    mutex_assert_held(&as->lock);
    struct area *prev = area_prev(as, a), *next = area_next(as, a);
    if (next && continues(a, next))
        join(as, a, next);
    if (prev && continues(prev, a))
        join(as, prev, a);
}

void area_merge_range(struct aspace *as, u32 start, u32 end)
{
    mutex_assert_held(&as->lock);
    struct area *a = area_above(as, start ? start - 1 : 0);
    while (a && a->start < end) {
        struct area *next = area_next(as, a);
        if (next && continues(a, next))
            join(as, a, next);
        else
            a = next;
    }
}

NOTRACE u32 area_page_prot(const struct area *a)
{
    assert(a->start < a->end);
    if (!(a->prot & (PROT_R | PROT_W | PROT_X)))
        return 0; // accessible to the kernel only: any user access faults
    return PROT_USER | PROT_R | (a->prot & (PROT_W | PROT_X));
}

u32 area_page_index(const struct area *a, u32 va)
{
    assert(va >= a->start && va < a->end);
    return (u32)((a->offset + (va - a->start)) >> PAGE_SHIFT);
}
