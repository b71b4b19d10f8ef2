// Address spaces: creation, fork, and release of the last reference.

#include "kernel/mm/aspace.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/area.h"
#include "kernel/mm/file_pages.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"

#define STACK_LIMIT_DEFAULT MIB(8)

SLAB_CACHE_COUNTED(aspace_cache, struct aspace, refs);

int aspace_create(struct aspace **out)
{
    struct aspace *as = slab_alloc(&aspace_cache);
    if (!as)
        return -ENOMEM;
    *as = (struct aspace){ .refs = 1,
                           .area_tree = { .summarize = area_summarize },
                           .stack_limit = STACK_LIMIT_DEFAULT,
                           .size_limit = ~0u,
                           .data_limit = ~0u };
    mutex_init(&as->lock, "address space");
    list_init(&as->areas);
    int err = pagetable_create(&as->pt);
    if (err) {
        slab_free(&aspace_cache, as);
        return err;
    }
    *out = as;
    return 0;
}

void aspace_ref(struct aspace *as)
{
    u32 old = __atomic_fetch_add(&as->refs, 1, __ATOMIC_RELAXED);
    assert(old);
}

void aspace_set_program(struct aspace *as, struct vnode *program)
{
    assert(!as->program);
    int err = vnode_begin_running(program);
    assert(!err); // the caller's own use excludes writers
    vnode_ref(program);
    as->program = program;
}

static void release_page(paddr_t frame)
{
    frame_unref(frame_from_paddr(frame));
}

void aspace_unref(struct aspace *as)
{
    u32 left = __atomic_sub_fetch(&as->refs, 1, __ATOMIC_ACQ_REL);
    assert(left != ~0u);
    if (left)
        return;
    // No task uses it, but kernel threads may still run on its page tables
    // (lazy TLB).
    aspace_unload(as);
    struct area *a;
    list_for_each(a, &as->areas, node)
        pagetable_release(&as->pt, a->start, a->end, release_page);
    areas_free(&as->areas);
    if (as->program) {
        vnode_end_running(as->program);
        vnode_unref(as->program);
    }
    pagetable_destroy_empty(&as->pt);
    slab_free(&aspace_cache, as);
}

// --- fork -------------------------------------------------------------------

// Copy on write: parent and child both map the page read-only. The first one
// that writes gets a copy, the last one the page itself.
static void share_page(paddr_t frame)
{
    frame_ref(frame_from_paddr(frame));
}

// The page table entries of shared areas are not copied: the child gets them by
// page faults. Entries of the kernel's own pages are: the child needs them at
// once.
static int copy_area(struct aspace *src, struct aspace *dst, struct area *a,
                     struct page_sharing *sharing)
{
    mutex_assert_held(&src->lock);
    struct area *copy = area_create(a);
    if (!copy)
        return -ENOMEM;
    area_append(dst, copy);
    if (a->flags & AREA_SHARED && !area_is_kernels(a))
        return 0;
    return pagetable_share(&src->pt, &dst->pt, a->start, a->end, sharing);
}

static int copy_areas(struct aspace *src, struct aspace *dst)
{
    mutex_assert_held(&src->lock);
    struct page_sharing sharing = { .share = share_page };
    struct area *a;
    int err = 0;
    list_for_each(a, &src->areas, node) {
        err = copy_area(src, dst, a, &sharing);
        if (err)
            break;
    }
    dst->resident_pages = sharing.pages;
    if (sharing.narrowed)
        tlb_shootdown(src, 0, 0);
    return err;
}

int aspace_fork(struct aspace *src, struct aspace **out)
{
    struct aspace *dst;
    if (frames_scarce())
        return -ENOMEM;
    int err = aspace_create(&dst);
    if (err)
        return err;
    mutex_lock(&src->lock);
    dst->brk_start = src->brk_start;
    dst->brk = src->brk;
    dst->mmap_shift = src->mmap_shift;
    dst->stack_limit = READ_ONCE(src->stack_limit);
    dst->size_limit = READ_ONCE(src->size_limit);
    dst->data_limit = READ_ONCE(src->data_limit);
    dst->vdso = src->vdso;
    dst->virtual_pages = src->virtual_pages;
    if (src->program)
        aspace_set_program(dst, src->program);
    err = copy_areas(src, dst);
    mutex_unlock(&src->lock);
    if (err) {
        aspace_unref(dst);
        return err;
    }
    *out = dst;
    return 0;
}

int aspace_for_each_area(struct aspace *as, int (*fn)(struct area *, void *),
                         void *arg)
{
    assert(!mutex_held(&as->lock));
    struct area *a;
    int result = 0;
    mutex_lock(&as->lock);
    list_for_each(a, &as->areas, node) {
        result = fn(a, arg);
        if (result)
            break;
    }
    mutex_unlock(&as->lock);
    return result;
}
