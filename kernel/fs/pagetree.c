// A node is freed when its last slot becomes empty, so an empty tree holds no
// memory.
#include "kernel/fs/pagetree.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"

#define BITS 6
#define BRANCHES (1u << BITS)

struct pagetree_node {
    u32 used;
    void *slot[BRANCHES];
};

SLAB_CACHE(node_cache, struct pagetree_node);

// The number of pages in a tree of this height.
static u64 span(u32 height)
{
    return 1ull << (BITS * height);
}

static u32 branch(u32 index, u32 height)
{
    return index >> (BITS * (height - 1)) & (BRANCHES - 1);
}

struct frame *pagetree_get(const struct pagetree *t, u32 index)
{
    void *at = t->root;
    u32 height = t->height;
    // The height is checked first: a shift for height 6 would exceed 32 bits.
    if (height < 6 && index >> (BITS * height))
        return NULL;
    for (; height && at; height--)
        at = ((struct pagetree_node *)at)->slot[branch(index, height)];
    return at;
}

static struct pagetree_node *node_create(void)
{
    struct pagetree_node *n = slab_alloc(&node_cache);
    if (n)
        memset(n, 0, sizeof(*n));
    return n;
}

static int grow(struct pagetree *t, u32 index)
{
    while (index >= span(t->height)) {
        if (t->root) {
            struct pagetree_node *n = node_create();
            if (!n)
                return -ENOMEM;
            n->slot[0] = t->root;
            n->used = 1;
            t->root = n;
        }
        t->height++;
    }
    return 0;
}

// An insertion that runs out of memory may leave empty nodes. They are on the
// path to the requested page, so taking pages there frees them.
int pagetree_insert(struct pagetree *t, u32 index, struct frame *f)
{
    assert(f);
    int err = grow(t, index);
    if (err)
        return err;
    void **slot = &t->root;
    u32 *used = NULL;
    for (u32 height = t->height; height; height--) {
        if (!*slot) {
            *slot = node_create();
            if (!*slot)
                return -ENOMEM;
            if (used)
                ++*used;
        }
        struct pagetree_node *n = *slot;
        used = &n->used;
        slot = &n->slot[branch(index, height)];
    }
    assert(!*slot);
    *slot = f;
    if (used)
        ++*used;
    return 0;
}

struct taking {
    u64 first;
    struct frame **out;
    u32 count, max;
};

// Takes frames from the subtree in *slot, whose first page is `base`.
static void take_from(struct taking *t, void **slot, u32 height, u64 base)
{
    if (height == 0) {
        if (base >= t->first) {
            t->out[t->count++] = *slot;
            *slot = NULL;
        }
        return;
    }
    struct pagetree_node *n = *slot;
    u64 step = span(height - 1);
    u32 i =
        t->first > base ? (u32)((t->first - base) >> (BITS * (height - 1))) : 0;
    for (; i < BRANCHES && t->count < t->max && n->used; i++) {
        if (!n->slot[i])
            continue;
        take_from(t, &n->slot[i], height - 1, base + i * step);
        if (!n->slot[i])
            n->used--;
    }
    if (n->used == 0) {
        slab_free(&node_cache, n);
        *slot = NULL;
    }
}

u32 pagetree_take(struct pagetree *t, u32 first, struct frame **out, u32 max)
{
    assert(max);
    struct taking taking = { .first = first, .out = out, .max = max };
    if (t->root)
        take_from(&taking, &t->root, t->height, 0);
    if (!t->root)
        t->height = 0;
    return taking.count;
}
