// The buddy allocator of a zone: free blocks of 2^order frames, aligned to
// their size. Two buddies are joined to a larger block when the second one is
// freed. The caller holds the zone's lock (start-up: one CPU, no lock).

#include "kernel/base/log.h"
#include "kernel/mm/zone.h"

struct zone zones[ZONES] = {
    { .lock = SPINLOCK_INIT("low frames") },
    { .lock = SPINLOCK_INIT("high frames") },
};

static void block_insert(struct zone *z, struct frame *f, u32 order)
{
    assert(order <= ORDER_MAX);
    f->flags |= FRAME_BLOCK;
    f->order = (u8)order;
    list_push_front(&z->blocks[order], &f->node);
    z->nonempty |= 1u << order;
}

static void block_remove(struct zone *z, struct frame *f)
{
    assert(f->order <= ORDER_MAX);
    f->flags &= (u8)~FRAME_BLOCK;
    f->node.prev->next = f->node.next;
    f->node.next->prev = f->node.prev;
    if (list_empty(&z->blocks[f->order]))
        z->nonempty &= ~(1u << f->order);
}

struct frame *buddy_alloc(struct zone *z, u32 order)
{
    u32 fitting = z->nonempty >> order;
    if (!fitting)
        return NULL;
    u32 have = order + (u32)__builtin_ctz(fitting);
    struct frame *f = list_first(&z->blocks[have], struct frame, node);
    block_remove(z, f);
    while (have > order) {
        have--;
        block_insert(z, f + (1u << have), have);
    }
    f->order = (u8)order;
    ADD_ONCE(z->free, -(1u << order));
    return f;
}

// The array's size is a multiple of the largest block, so a buddy's entry
// always exists. The zone boundary is such a multiple too, so buddies are in
// one zone.
void buddy_free(struct zone *z, struct frame *f, u32 order)
{
    u32 number = frame_number(f);
    ADD_ONCE(z->free, 1u << order);
    for (; order < ORDER_MAX; order++) {
        struct frame *buddy = &frames[number ^ (1u << order)];
        if (!(buddy->flags & FRAME_BLOCK) || buddy->order != order)
            break;
        block_remove(z, buddy);
        number &= ~(1u << order);
    }
    block_insert(z, &frames[number], order);
}
