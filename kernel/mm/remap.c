// mremap: grows, shrinks or moves an area with its pages.

#include "kernel/base/errno.h"
#include "kernel/mm/area.h"

struct remapping {
    u32 old, old_len, new_len;
    bool may_move, fixed;
    u32 new_addr;
};

static int check(struct remapping *r)
{
    if (r->old % PAGE_SIZE || !r->old_len || !r->new_len ||
        r->old_len > USER_END || r->new_len > USER_END)
        return -EINVAL;
    r->old_len = ALIGN_UP(r->old_len, PAGE_SIZE);
    r->new_len = ALIGN_UP(r->new_len, PAGE_SIZE);
    if (r->old >= USER_END || r->old_len > USER_END - r->old)
        return -EFAULT;
    if (!r->fixed)
        return 0;
    u32 at = r->new_addr;
    if (!r->may_move || at % PAGE_SIZE || at >= USER_END ||
        r->new_len > USER_END - at)
        return -EINVAL;
    if (at < MMAP_MIN)
        return -EPERM;
    bool overlap = at < r->old + r->old_len && r->old < at + r->new_len;
    return overlap ? -EINVAL : 0;
}

struct move {
    struct pagetable *pt;
    u32 distance; // new minus old, modulo 2^32
};

static int copy_entry(u32 va, void *entry UNUSED, const struct mapping *m,
                      void *arg)
{
    struct move *move = arg;
    return pagetable_map(move->pt, va + move->distance, m->frame, m->prot);
}

static int clear_entry(u32 va UNUSED, void *entry,
                       const struct mapping *m UNUSED, void *arg UNUSED)
{
    pagetable_entry_clear(entry);
    return 0;
}

// The pages are mapped at the new range before they are unmapped at the old
// one: if a page table cannot be allocated, the old mapping is unchanged.
static int move_pages(struct aspace *as, u32 from, u32 to, u32 length)
{
    mutex_assert_held(&as->lock);
    struct move move = { &as->pt, to - from };
    int err = pagetable_walk(&as->pt, from, from + length, copy_entry, &move);
    u32 cleared = err ? to : from;
    pagetable_walk(&as->pt, cleared, cleared + length, clear_entry, NULL);
    tlb_shootdown(as, cleared, length / PAGE_SIZE);
    return err;
}

// Moves the old range, which lies in one area, to the free range at `to`.
static int move(struct aspace *as, const struct remapping *r, u32 to,
                struct list *dead)
{
    mutex_assert_held(&as->lock);
    u32 kept = MIN(r->old_len, r->new_len);
    if (area_split(as, r->old) || area_split(as, r->old + r->old_len))
        return -ENOMEM;
    struct area *from = area_at(as, r->old);
    struct area *a = area_create(from);
    if (!a)
        return -ENOMEM;
    a->start = to;
    a->end = to + r->new_len;
    a->flags &= AREA_SHARED | AREA_NO_WRITE; // no longer a stack or the heap
    int err = move_pages(as, r->old, to, kept);
    if (err) {
        list_push_back(dead, &a->node);
        return err;
    }
    if (as->vdso == r->old)
        WRITE_ONCE(as->vdso, to); // return address of signal handlers
    unmap_pages(as, r->old + kept, r->old + r->old_len);
    area_remove(as, from, dead);
    area_insert(as, a);
    area_merge(as, a);
    return 0;
}

static bool grow_in_place(struct aspace *as, struct area *a,
                          const struct remapping *r)
{
    mutex_assert_held(&as->lock);
    u32 end = r->old + r->old_len, new_end = r->old + r->new_len;
    if (a->end != end || r->new_len > USER_END - r->old ||
        !area_range_free(as, end, new_end))
        return false;
    area_grow(as, a, a->start, new_end);
    area_merge(as, a);
    return true;
}

static int remap(struct aspace *as, const struct remapping *r,
                 struct list *dead, u32 *out)
{
    mutex_assert_held(&as->lock);
    struct area *a = area_at(as, r->old);
    if (!a || r->old + r->old_len > a->end)
        return -EFAULT;
    if (r->new_len > r->old_len && area_is_kernels(a))
        return -EFAULT; // as on Linux: no pages beyond its end
    u64 last = a->offset + (r->old - a->start) + r->new_len - 1;
    if (last >> PAGE_SHIFT >> 32)
        return -EINVAL;
    *out = r->old;
    u32 more = (MAX(r->new_len, r->old_len) - r->old_len) / PAGE_SIZE;
    if (aspace_check_size(as, more) || aspace_check_data(as, a, a->prot, more))
        return -ENOMEM;
    if (r->fixed) {
        *out = r->new_addr;
        int err = unmap_range(as, r->new_addr, r->new_addr + r->new_len, dead);
        return err ? err : move(as, r, r->new_addr, dead);
    }
    if (r->new_len <= r->old_len)
        return unmap_range(as, r->old + r->new_len, r->old + r->old_len, dead);
    if (grow_in_place(as, a, r))
        return 0;
    *out = r->may_move ? area_find_gap(as, r->new_len) : 0;
    return *out ? move(as, r, *out, dead) : -ENOMEM;
}

int aspace_remap(struct aspace *as, u32 old, u32 old_len, u32 new_len,
                 bool may_move, bool fixed, u32 new_addr, u32 *out)
{
    struct list dead = LIST_INIT(dead);
    struct remapping r = { old, old_len, new_len, may_move, fixed, new_addr };
    int err = check(&r);
    if (err)
        return err;
    mutex_lock(&as->lock);
    err = remap(as, &r, &dead, out);
    mutex_unlock(&as->lock);
    areas_free(&dead);
    return err;
}
