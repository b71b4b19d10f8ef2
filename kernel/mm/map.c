// Mapping, unmapping and protecting ranges of an address space.
//
// Addresses and lengths are unchecked user input: each pair is checked against
// USER_END before it is added.
//
// Removed areas are collected and freed after the unlock: dropping the last
// reference to a file may do what is not allowed with an address space's mutex
// held.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"
#include "kernel/mm/area.h"
#include "kernel/mm/file_pages.h"
#include "kernel/mm/frame.h"

#define PROT_MASK (PROT_R | PROT_W | PROT_X)

// Checks [addr, addr + *length), and rounds the length up to pages. False when
// the range is unaligned, empty or not within user addresses.
static bool valid_range(u32 addr, u32 *length)
{
    if (addr % PAGE_SIZE || !*length || *length > USER_END)
        return false;
    *length = ALIGN_UP(*length, PAGE_SIZE);
    return addr < USER_END && *length <= USER_END - addr;
}

// --- unmapping --------------------------------------------------------------

void unmap_pages(struct aspace *as, u32 start, u32 end)
{
    mutex_assert_held(&as->lock);
    struct page_batch b;
    do {
        pagetable_unmap_batch(&as->pt, start, end, &b);
        if (!b.count)
            return;
        tlb_shootdown(as, b.first, (b.last - b.first) / PAGE_SIZE + 1);
        for (u32 i = 0; i < b.count; i++)
            frame_unref(frame_from_paddr(b.frames[i]));
        WRITE_ONCE(as->resident_peak, aspace_peak_resident(as));
        ADD_ONCE(as->resident_pages, -b.count);
        start = b.last + PAGE_SIZE;
    } while (b.count == PAGE_BATCH);
}

int unmap_range(struct aspace *as, u32 start, u32 end, struct list *dead)
{
    mutex_assert_held(&as->lock);
    if (area_split(as, start) || area_split(as, end))
        return -ENOMEM;
    struct area *a = area_above(as, start);
    while (a && a->start < end) {
        struct area *next = area_next(as, a);
        unmap_pages(as, a->start, a->end);
        area_remove(as, a, dead);
        a = next;
    }
    return 0;
}

int aspace_unmap(struct aspace *as, u32 addr, u32 length)
{
    struct list dead = LIST_INIT(dead);
    if (!valid_range(addr, &length))
        return -EINVAL;
    mutex_lock(&as->lock);
    int err = unmap_range(as, addr, addr + length, &dead);
    mutex_unlock(&as->lock);
    areas_free(&dead);
    return err;
}

int aspace_discard(struct aspace *as, u32 addr, u32 length)
{
    if (!length)
        return addr % PAGE_SIZE ? -EINVAL : 0;
    if (!valid_range(addr, &length))
        return -EINVAL;
    u32 end = addr + length;
    mutex_lock(&as->lock);
    int err = area_range_full(as, addr, end) ? 0 : -ENOMEM;
    struct area *a = area_above(as, addr);
    for (; a && a->start < end; a = area_next(as, a))
        unmap_pages(as, MAX(a->start, addr), MIN(a->end, end));
    mutex_unlock(&as->lock);
    return err;
}

// --- mapping ----------------------------------------------------------------

// Finds a range of `length` bytes and makes it free. The lock is held.
static int place(struct aspace *as, u32 hint, u32 length, u32 map_flags,
                 struct list *dead, u32 *start)
{
    mutex_assert_held(&as->lock);
    bool free = hint >= MMAP_MIN && length <= USER_END - MIN(hint, USER_END) &&
                area_range_free(as, hint, hint + length);
    if (map_flags & (MAP_AT_EXACTLY | MAP_NO_REPLACE)) {
        *start = hint;
        if (free)
            return 0;
        if (map_flags & MAP_NO_REPLACE)
            return -EEXIST;
        return unmap_range(as, hint, hint + length, dead);
    }
    *start = free ? hint : area_find_gap(as, length);
    return *start ? 0 : -ENOMEM;
}

static int check_place(u32 hint, u32 length, u32 map_flags)
{
    if (length > USER_END - MMAP_MIN)
        return -ENOMEM;
    if (!(map_flags & (MAP_AT_EXACTLY | MAP_NO_REPLACE)))
        return 0;
    if (hint % PAGE_SIZE)
        return -EINVAL;
    if (hint < MMAP_MIN)
        return -EPERM;
    return hint < USER_END && length <= USER_END - hint ? 0 : -ENOMEM;
}

// Checks file and offset of a new area: page numbers must fit into 32 bits.
static int check_backing(const struct area *a, u32 length)
{
    if (a->offset % PAGE_SIZE)
        return -EINVAL;
    if (a->vnode && !vnode_has_pages(a->vnode))
        return -ENODEV;
    return (a->offset + length - 1) >> PAGE_SHIFT >> 32 ? -EOVERFLOW : 0;
}

static struct area *make_area(struct area *like, u32 length)
{
    bool anonymous_shared = like->flags & AREA_SHARED && !like->vnode;
    if (!like->vnode)
        like->offset = 0;
    if (anonymous_shared) {
        like->shared = shared_pages_create(length / PAGE_SIZE);
        if (!like->shared)
            return NULL;
    }
    struct area *a = area_create(like);
    if (like->shared)
        shared_pages_unref(like->shared); // the area has its own reference
    return a;
}

static void populate(struct aspace *as, u32 start, u32 length)
{
    mutex_lock(&as->lock);
    u32 end = start + length;
    for (u32 va = start; va < end && !signal_fatal(); va += PAGE_SIZE) {
        struct area *a = area_at(as, va);
        if (!a || fault_in(as, va, a->prot & PROT_W ? PROT_W : PROT_R))
            break;
    }
    mutex_unlock(&as->lock);
}

// Places the new area and inserts it. Takes over `a`: frees it on an error.
static int put(struct aspace *as, struct area *a, u32 hint, u32 length,
               u32 map_flags, u32 *start)
{
    struct list dead = LIST_INIT(dead);
    hint &= PAGE_MASK;
    mutex_lock(&as->lock);
    u32 pages = length / PAGE_SIZE, replaced = 0;
    if (map_flags & MAP_AT_EXACTLY)
        replaced = aspace_pages_within(as, hint, hint + length);
    int err = aspace_check_size(as, pages - replaced);
    if (!err)
        err = aspace_check_data(as, a, a->prot, pages - replaced);
    if (!err)
        err = place(as, hint, length, map_flags, &dead, start);
    if (!err) {
        a->start = *start;
        a->end = *start + length;
        area_insert(as, a);
        area_merge(as, a);
    }
    mutex_unlock(&as->lock);
    areas_free(&dead);
    if (err)
        area_free(a);
    return err;
}

int aspace_map(struct aspace *as, u32 hint, u32 length, u32 prot,
               u32 area_flags, u32 map_flags, struct vnode *vn, u64 offset,
               u32 *addr)
{
    struct area like = { .prot = prot & PROT_MASK,
                         .flags = area_flags,
                         .vnode = vn,
                         .offset = offset };
    if (!length)
        return -EINVAL;
    int err = check_place(hint, length, map_flags);
    length = ALIGN_UP(length, PAGE_SIZE);
    if (!err)
        err = check_backing(&like, length);
    if (err)
        return err;
    struct area *a = make_area(&like, length);
    if (!a)
        return -ENOMEM;
    u32 start;
    err = put(as, a, hint, length, map_flags, &start);
    if (err)
        return err;
    if (map_flags & MAP_POPULATE_NOW)
        populate(as, start, length);
    *addr = start;
    return 0;
}

int aspace_map_shared(struct aspace *as, u32 addr, u32 length, u32 prot,
                      u32 area_flags, struct shared_pages *pages, u32 offset)
{
    struct area like = { .prot = prot & PROT_MASK,
                         .flags = area_flags | AREA_SHARED,
                         .shared = pages,
                         .offset = offset };
    struct area *a = area_create(&like);
    if (!a)
        return -ENOMEM;
    int err = put(as, a, addr, length, MAP_NO_REPLACE, &addr);
    if (!err)
        populate(as, addr, length);
    return err;
}

int aspace_map_to_read(struct aspace *as, struct shared_pages *pages,
                       u32 length, u32 *addr)
{
    struct area like = { .prot = PROT_R,
                         .flags = AREA_SHARED | AREA_NO_WRITE,
                         .shared = pages };
    struct area *a = area_create(&like);
    return a ? put(as, a, 0, length, 0, addr) : -ENOMEM;
}

u32 aspace_set_brk(struct aspace *as, u32 brk)
{
    struct list dead = LIST_INIT(dead);
    struct area like = { .prot = PROT_R | PROT_W, .flags = AREA_HEAP };
    mutex_lock(&as->lock);
    u32 old_end = ALIGN_UP(as->brk, PAGE_SIZE);
    u32 new_end = ALIGN_UP(MIN(brk, USER_END), PAGE_SIZE);
    bool ok = brk >= as->brk_start && brk <= area_mmap_top(as);
    if (ok && new_end < old_end)
        ok = !unmap_range(as, new_end, old_end, &dead);
    if (ok && new_end > old_end) {
        like.start = old_end;
        like.end = new_end;
        struct area *a = NULL;
        u32 pages = (new_end - old_end) / PAGE_SIZE;
        if (area_range_free(as, old_end, new_end) &&
            !aspace_check_size(as, pages) &&
            !aspace_check_data(as, &like, like.prot, pages))
            a = area_create(&like);
        if (a) {
            area_insert(as, a);
            area_merge(as, a);
        }
        ok = a != NULL;
    }
    if (ok)
        as->brk = brk;
    brk = as->brk;
    mutex_unlock(&as->lock);
    areas_free(&dead);
    return brk;
}

// --- protection -------------------------------------------------------------

struct protection {
    const struct area *area;
    u32 first, last; // pages changed; last < first: none
};

static int protect_page(u32 va, void *entry, const struct mapping *m, void *arg)
{
    struct protection *p = arg;
    u32 prot = area_page_prot(p->area);
    // The frame of a read-only private page may be shared: the write fault
    // decides whether to copy it.
    if (!(p->area->flags & AREA_SHARED))
        prot &= m->prot | ~PROT_W;
    if (prot == m->prot)
        return 0;
    pagetable_entry_protect(entry, prot);
    p->first = MIN(p->first, va);
    p->last = MAX(p->last, va);
    return 0;
}

static int protect_range(struct aspace *as, u32 start, u32 end, u32 prot)
{
    mutex_assert_held(&as->lock);
    if (!area_range_full(as, start, end))
        return -ENOMEM;
    struct area *a = area_above(as, start);
    for (; prot & PROT_W && a && a->start < end; a = area_next(as, a)) {
        if (a->flags & AREA_NO_WRITE)
            return -EACCES;
    }
    if (prot & PROT_W && aspace_check_writable(as, start, end))
        return -ENOMEM;
    if (area_split(as, start) || area_split(as, end))
        return -ENOMEM;
    struct protection p = { .first = ~0u, .last = 0 };
    a = area_above(as, start);
    for (; a && a->start < end; a = area_next(as, a)) {
        a->prot = prot;
        p.area = a;
        pagetable_walk(&as->pt, a->start, a->end, protect_page, &p);
    }
    if (p.first <= p.last)
        tlb_shootdown(as, p.first, (p.last - p.first) / PAGE_SIZE + 1);
    return 0;
}

int aspace_protect(struct aspace *as, u32 addr, u32 length, u32 prot)
{
    if (addr % PAGE_SIZE)
        return -EINVAL;
    if (!length)
        return 0;
    if (!valid_range(addr, &length))
        return -ENOMEM;
    u32 end = addr + length;
    mutex_lock(&as->lock);
    int err = protect_range(as, addr, end, prot & PROT_MASK);
    area_merge_range(as, addr, end);
    mutex_unlock(&as->lock);
    return err;
}

// --- which pages are in memory ----------------------------------------------

int aspace_resident(struct aspace *as, u32 addr, u32 pages, u8 *out)
{
    struct mapping m;
    mutex_lock(&as->lock);
    int err = area_range_full(as, addr, addr + pages * PAGE_SIZE) ? 0 : -ENOMEM;
    for (u32 i = 0; !err && i < pages; i++)
        out[i] = pagetable_lookup(&as->pt, addr + i * PAGE_SIZE, &m);
    mutex_unlock(&as->lock);
    return err;
}

int aspace_check_mapped(struct aspace *as, u32 addr, u32 length)
{
    if (!length)
        return 0;
    if (addr >= USER_END || length > USER_END - addr)
        return -ENOMEM;
    mutex_lock(&as->lock);
    bool full = area_range_full(as, addr, addr + length);
    mutex_unlock(&as->lock);
    return full ? 0 : -ENOMEM;
}

int aspace_shared_object(struct aspace *as, u32 addr, const void **object,
                         u32 *offset)
{
    mutex_lock(&as->lock);
    const struct area *a = area_at(as, addr);
    int err = a && a->prot ? 0 : -EFAULT;
    if (!err && a->flags & AREA_SHARED) {
        *object = a->vnode ? (const void *)a->vnode : (const void *)a->shared;
        *offset = addr - a->start + (u32)a->offset;
    }
    mutex_unlock(&as->lock);
    return err;
}
