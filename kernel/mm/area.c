// The sorted list of areas: finding, placing, splitting and joining them.
//
// A program has a handful to two hundred areas, and looks for the same ones
// again and again: a list with a hint to the last one found is enough.

#include "kernel/mm/area.h"

#include "kernel/errno.h"
#include "kernel/fs/vfs.h"
#include "kernel/init/log.h"
#include "kernel/mm/heap.h"

SLAB_CACHE(area_cache, struct area);

static struct area *area_of(struct list *node)
{
    return list_entry(node, struct area, node);
}

struct area *area_next(const struct aspace *as, const struct area *a)
{
    return a->node.next == &as->areas ? NULL : area_of(a->node.next);
}

static struct area *area_prev(const struct aspace *as, const struct area *a)
{
    return a->node.prev == &as->areas ? NULL : area_of(a->node.prev);
}

struct area *area_above(struct aspace *as, u32 addr)
{
    mutex_assert_held(&as->lock);
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
    if (a)
        as->hint = a;
    return a;
}

struct area *area_at(struct aspace *as, u32 addr)
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

u32 area_mmap_top(const struct aspace *as)
{
    u32 room = MIN(MAX(as->stack_limit, STACK_ROOM), STACK_ROOM_MAX);
    return USER_END - ALIGN_UP(room, PAGE_SIZE) - STACK_GUARD;
}

// Searches downwards, from where the last search for so much or less has ended.
u32 area_find_gap(struct aspace *as, u32 length)
{
    mutex_assert_held(&as->lock);
    u32 ceiling = area_mmap_top(as);
    struct list *node = as->areas.prev;
    if (length >= as->gap_length && as->gap_floor < ceiling) {
        ceiling = as->gap_floor;
        struct area *above = area_above(as, ceiling);
        if (above)
            node = &above->node;
    }
    for (;; node = node->prev) {
        bool bottom = node == &as->areas;
        u32 floor = bottom ? MMAP_MIN : area_of(node)->end;
        if (floor < ceiling && ceiling - floor >= length)
            break;
        if (bottom)
            return 0;
        u32 start = area_of(node)->start;
        if (area_of(node)->flags & AREA_STACK)
            start -= MIN(start, STACK_GUARD);
        ceiling = MIN(ceiling, start);
    }
    as->gap_floor = ceiling;
    as->gap_length = length;
    return ceiling - length;
}

// What is written to the area goes to the file, also when that is closed.
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
        assert(!err); // who makes it has the file open, or such an area
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

void area_insert(struct aspace *as, struct area *a)
{
    mutex_assert_held(&as->lock);
    struct area *above = area_above(as, a->start);
    assert(!above || above->start >= a->end);
    list_push_back(above ? &above->node : &as->areas, &a->node);
    ADD_ONCE(as->virtual_pages, (a->end - a->start) / PAGE_SIZE);
    as->hint = a;
}

void area_remove(struct aspace *as, struct area *a, struct list *dead)
{
    mutex_assert_held(&as->lock);
    struct area *next = area_next(as, a);
    if (as->hint == a)
        as->hint = area_prev(as, a);
    if (a->end > as->gap_floor) // a longer gap, up to the next one
        as->gap_floor = next ? next->start : USER_END;
    list_remove(&a->node);
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
    // What is left of a stack below an unmapped or changed part is no stack.
    if (a->flags & AREA_STACK)
        upper->flags &= ~AREA_STACK;
    list_push_front(&a->node, &upper->node);
    return 0;
}

static bool continues(const struct area *a, const struct area *b)
{
    if (a->end != b->start || a->prot != b->prot || a->vnode != b->vnode ||
        a->shared != b->shared)
        return false;
    // A stack may take in what was split off above it.
    if ((a->flags & ~AREA_STACK) != b->flags)
        return false;
    return !has_pages_behind(a) || a->offset + (a->end - a->start) == b->offset;
}

// `b`, the next one, goes; its references are not the last ones.
static void join(struct aspace *as, struct area *a, struct area *b)
{
    mutex_assert_held(&as->lock);
    assert(a->end == b->start);
    a->end = b->end;
    list_remove(&b->node);
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

u32 area_page_prot(const struct area *a)
{
    assert(a->start < a->end);
    if (!(a->prot & (PROT_R | PROT_W | PROT_X)))
        return 0; // present for the kernel only: any use by the program faults
    return PROT_USER | PROT_R | (a->prot & (PROT_W | PROT_X));
}

u32 area_page_index(const struct area *a, u32 va)
{
    assert(va >= a->start && va < a->end);
    return (u32)((a->offset + (va - a->start)) >> PAGE_SHIFT);
}
