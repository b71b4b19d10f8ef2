// Page faults: mapping an area's pages on demand, and copy on write.
//
// The area determines a page's frame: a zeroed frame (anonymous), the file's
// own frame (shared, or private and only read so far), a copy of the file's
// frame (private and written), or a frame of the shared pages. Each page table
// entry owns one reference to its frame. In a private area an entry without
// PROT_W means that the frame may be shared: a write copies the frame unless
// this is the only reference.
//
// All functions run with as->lock held unless stated otherwise. They take
// spinlocks of vnodes and frames, but no other mutex.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/area.h"
#include "kernel/mm/file_pages.h"
#include "kernel/mm/frame.h"
#include "lib/string.h"

// Fault-around: a read fault of a file maps the other pages of this aligned
// block too. Four pages need the fewest instructions for an exec: of eight or
// more, most are not used.
#define AROUND_BYTES 0x4000u

// Maps a page that is not mapped. Takes over the caller's reference to `f`.
static int map_new(struct aspace *as, u32 va, struct frame *f, u32 prot)
{
    mutex_assert_held(&as->lock);
    int err = pagetable_map(&as->pt, va, frame_paddr(f), prot);
    if (err)
        frame_unref(f);
    else
        ADD_ONCE(as->resident_pages, 1);
    return err;
}

static int fault_anonymous(struct aspace *as, struct area *a, u32 va)
{
    struct frame *f = frame_alloc(0, FRAME_ANY | FRAME_ZERO, FRAME_USER);
    if (!f)
        return -ENOMEM;
    return map_new(as, va, f, area_page_prot(a));
}

static int file_frame(struct area *a, u32 va, bool write, struct frame **out)
{
    return vnode_get_page(a->vnode, area_page_index(a, va), write, out);
}

static int fault_shared(struct aspace *as, struct area *a, u32 va)
{
    struct frame *f;
    int err;
    // A hole of the file gets its frame now: a zero frame mapped instead would
    // not show later writes to the file.
    if (a->vnode)
        err = file_frame(a, va, true, &f);
    else
        err = shared_pages_get(a->shared, area_page_index(a, va), &f);
    if (err)
        return err;
    return map_new(as, va, f, area_page_prot(a));
}

static int fault_private_write(struct aspace *as, struct area *a, u32 va)
{
    struct frame *from, *f;
    int err = file_frame(a, va, false, &from);
    if (err)
        return err;
    f = frame_alloc(0, FRAME_ANY, FRAME_USER);
    if (f)
        frame_copy(f, from);
    frame_unref(from);
    if (!f)
        return -ENOMEM;
    return map_new(as, va, f, area_page_prot(a));
}

// Fault-around. An error is ignored: it occurs again, and is reported, if the
// program accesses that page.
static void map_around(struct aspace *as, struct area *a, u32 va)
{
    u32 start = ALIGN_DOWN(va, AROUND_BYTES);
    u32 end = MIN(a->end, start + AROUND_BYTES);
    u32 prot = area_page_prot(a) & ~PROT_W;
    struct mapping m;
    struct frame *f;
    for (u32 p = MAX(a->start, start); p < end; p += PAGE_SIZE) {
        if (pagetable_lookup(&as->pt, p, &m))
            continue;
        if (file_frame(a, p, false, &f) || map_new(as, p, f, prot))
            return;
    }
}

static int fault_private_read(struct aspace *as, struct area *a, u32 va)
{
    struct frame *f;
    int err = file_frame(a, va, false, &f);
    if (!err)
        err = map_new(as, va, f, area_page_prot(a) & ~PROT_W);
    if (!err)
        map_around(as, a, va);
    return err;
}

static int fault_absent(struct aspace *as, struct area *a, u32 va, u32 access)
{
    if (a->flags & AREA_SHARED)
        return fault_shared(as, a, va);
    if (!a->vnode)
        return fault_anonymous(as, a, va);
    if (access == PROT_W)
        return fault_private_write(as, a, va);
    return fault_private_read(as, a, va);
}

// Widens the protection of an existing entry. No TLB shootdown: a stale entry
// on another CPU causes a page fault there, which finds the new entry.
static int widen(struct aspace *as, struct area *a, u32 va, paddr_t frame)
{
    mutex_assert_held(&as->lock);
    int err = pagetable_map(&as->pt, va, frame, area_page_prot(a));
    tlb_flush_page(va);
    return err;
}

static int copy_on_write(struct aspace *as, struct area *a, u32 va,
                         struct frame *old)
{
    mutex_assert_held(&as->lock);
    if (frame_refs(old) == 1)
        return widen(as, a, va, frame_paddr(old));
    struct frame *f = frame_alloc(0, FRAME_ANY, FRAME_USER);
    if (!f)
        return -ENOMEM;
    frame_copy(f, old);
    int err = pagetable_map(&as->pt, va, frame_paddr(f), area_page_prot(a));
    if (err) {
        frame_unref(f);
        return err;
    }
    // Until the shootdown other CPUs may read the old frame by stale entries.
    tlb_shootdown(as, va, 1);
    frame_unref(old);
    return 0;
}

static int fault_present(struct aspace *as, struct area *a, u32 va, u32 access,
                         const struct mapping *m)
{
    if (access != PROT_W || (m->prot & PROT_W)) {
        tlb_flush_page(va); // stale TLB entry: another thread handled the fault
        return 0;
    }
    if (a->flags & AREA_SHARED)
        return widen(as, a, va, m->frame);
    return copy_on_write(as, a, va, frame_from_paddr(m->frame));
}

// Grows the stack above `va` down to it, unless its limit or the area below
// prevents that. NULL: no stack, or not allowed.
static struct area *grow_stack(struct aspace *as, u32 va)
{
    mutex_assert_held(&as->lock);
    struct area *a = area_above(as, va);
    if (!a || !(a->flags & AREA_STACK) || va < MMAP_MIN ||
        a->end - va > READ_ONCE(as->stack_limit))
        return NULL;
    if (aspace_check_size(as, (a->start - va) / PAGE_SIZE))
        return NULL;
    if (!area_range_free(as, va - STACK_GUARD, a->start))
        return NULL;
    area_grow(as, a, va, a->end);
    return a;
}

static bool allows(const struct area *a, u32 access)
{
    if (access == PROT_R) // the MMU cannot deny reads of an accessible page
        return a->prot & (PROT_R | PROT_W | PROT_X);
    return a->prot & access;
}

int fault_in(struct aspace *as, u32 va, u32 access)
{
    mutex_assert_held(&as->lock);
    struct area *a = area_at(as, va);
    if (unlikely(!a) && !(a = grow_stack(as, va)))
        return -EFAULT;
    if (unlikely(!allows(a, access)))
        return -EACCES;
    struct mapping m;
    if (pagetable_lookup(&as->pt, va, &m))
        return fault_present(as, a, va, access, &m);
    return fault_absent(as, a, va, access);
}

static u32 wanted_access(u32 error_code)
{
    if (error_code & FAULT_WRITE)
        return PROT_W;
    return error_code & FAULT_EXEC ? PROT_X : PROT_R;
}

// Takes the lock itself. A fault with the lock held is a kernel bug (a user
// copy under the lock): it fails instead of deadlocking.
int aspace_fault(struct aspace *as, u32 addr, u32 error_code)
{
    if (addr >= USER_END || mutex_held(&as->lock))
        return -EFAULT;
    mutex_lock(&as->lock);
    int err = fault_in(as, addr & PAGE_MASK, wanted_access(error_code));
    mutex_unlock(&as->lock);
    return err;
}

// --- memory of another address space ----------------------------------------

// Copies within one page.
static int access_page(struct aspace *as, u32 va, void *buf, u32 n, u32 access)
{
    struct mapping m;
    int err = fault_in(as, va & PAGE_MASK, access);
    if (err)
        return err;
    if (!pagetable_lookup(&as->pt, va & PAGE_MASK, &m))
        return -EFAULT;
    char *page = window_map(m.frame);
    if (access == PROT_W)
        memcpy(page + va % PAGE_SIZE, buf, n);
    else
        memcpy(buf, page + va % PAGE_SIZE, n);
    window_unmap(page);
    return 0;
}

static int access_memory(struct aspace *as, u32 addr, void *buf, size_t n,
                         u32 access)
{
    size_t done = 0;
    int err = addr < USER_END && n <= USER_END - addr ? 0 : -EFAULT;
    mutex_lock(&as->lock);
    while (!err && done < n) {
        u32 va = addr + done;
        u32 part = MIN(n - done, PAGE_SIZE - va % PAGE_SIZE);
        err = access_page(as, va, (char *)buf + done, part, access);
        if (!err)
            done += part;
    }
    mutex_unlock(&as->lock);
    if (!err || done)
        return (int)done;
    return err == -ENOMEM ? err : -EFAULT;
}

int aspace_write(struct aspace *as, u32 addr, const void *src, size_t n)
{
    return access_memory(as, addr, (void *)src, n, PROT_W);
}

int aspace_read(struct aspace *as, u32 addr, void *dst, size_t n)
{
    return access_memory(as, addr, dst, n, PROT_R);
}
