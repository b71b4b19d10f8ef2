// Anonymous shared memory: a sparse array of frames, referenced by areas of one
// or, after a fork, several address spaces. The array owns one reference to
// each of its frames; mappings own theirs.
//
// Locking: `lock` guards the array; `refs` is atomic.

#include "kernel/mm/shared.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"

#define CHUNK_FRAMES (PAGE_SIZE / sizeof(struct frame *))

struct shared_pages {
    u32 refs, pages;
    struct spinlock lock;
    struct frame **chunks[]; // each CHUNK_FRAMES pointers, or NULL
};

struct shared_pages *shared_pages_create(u32 pages)
{
    assert(pages);
    u32 chunks = DIV_ROUND_UP(pages, CHUNK_FRAMES);
    struct shared_pages *s =
        kzalloc(sizeof(*s) + chunks * sizeof(s->chunks[0]));
    if (!s)
        return NULL;
    s->refs = 1;
    s->pages = pages;
    spin_init(&s->lock, "shared pages");
    return s;
}

// The array element of a page. NULL: no memory.
static struct frame **slot(struct shared_pages *s, u32 index)
{
    struct frame ***chunk = &s->chunks[index / CHUNK_FRAMES];
    if (!*chunk)
        *chunk = kzalloc(PAGE_SIZE);
    return *chunk ? &(*chunk)[index % CHUNK_FRAMES] : NULL;
}

// No lock: `s` is not yet known to any other thread.
static bool put(struct shared_pages *s, u32 index, struct frame *f)
{
    struct frame **at = slot(s, index);
    if (!at)
        return false;
    frame_ref(f);
    *at = f;
    return true;
}

struct shared_pages *shared_pages_of_kernel(const void *const *addresses,
                                            u32 pages)
{
    struct shared_pages *s = shared_pages_create(pages);
    for (u32 i = 0; s && i < pages; i++) {
        if (!put(s, i, frame_from_paddr(image_paddr(addresses[i])))) {
            shared_pages_unref(s);
            s = NULL;
        }
    }
    return s;
}

struct shared_pages *shared_pages_of_ring(const void *start, u32 pages)
{
    struct shared_pages *s = shared_pages_create(2 * pages);
    for (u32 i = 0; s && i < 2 * pages; i++) {
        if (!put(s, i,
                 frame_of_vmap((const u8 *)start + i % pages * PAGE_SIZE))) {
            shared_pages_unref(s);
            s = NULL;
        }
    }
    return s;
}

void shared_pages_ref(struct shared_pages *s)
{
    u32 old = __atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
    assert(old); // the object is still referenced
}

static void free_chunk(struct frame **chunk)
{
    for (u32 i = 0; chunk && i < CHUNK_FRAMES; i++) {
        if (chunk[i])
            frame_unref(chunk[i]);
    }
    kfree(chunk);
}

void shared_pages_unref(struct shared_pages *s)
{
    if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
        return;
    for (u32 i = 0; i < DIV_ROUND_UP(s->pages, CHUNK_FRAMES); i++)
        free_chunk(s->chunks[i]);
    kfree(s);
}

// With the lock held; takes a reference for the caller.
static struct frame *get(struct shared_pages *s, u32 index)
{
    spin_assert_held(&s->lock);
    struct frame **at = slot(s, index);
    if (!at)
        return NULL;
    if (!*at)
        *at = frame_alloc(0, FRAME_ANY | FRAME_ZERO, FRAME_USER);
    if (*at)
        frame_ref(*at);
    return *at;
}

int shared_pages_get(struct shared_pages *s, u32 index, struct frame **out)
{
    if (index >= s->pages)
        return -EIO;
    spin_lock(&s->lock);
    *out = get(s, index);
    spin_unlock(&s->lock);
    return *out ? 0 : -ENOMEM;
}
