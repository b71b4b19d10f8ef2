// Zones of frames and the per-CPU caches in front of them; private to
// kernel/mm (buddy.c, frame.c, frame_init.c) and the checkers.
//
// The frame table has one struct frame for each frame below `frame_count`;
// frame_init puts it into the low zone. A frame's number is its index. Frames
// that are not RAM, or are never allocated, lack FRAME_MANAGED.
#pragma once

#include "arch/cpu.h"
#include "kernel/mm/frame.h"
#include "kernel/sync/spinlock.h"

#define FRAME_MANAGED 1u // flags: RAM managed by the allocator
#define FRAME_BLOCK 2u   // flags: first frame of a free buddy block

#define ORDERS 11u // blocks of 4 KiB to 4 MiB
#define ORDER_MAX (ORDERS - 1)

enum { ZONE_LOW, ZONE_HIGH, ZONES };

struct zone {
    struct spinlock lock; // guards all fields below
    u32 nonempty;         // bit n: there are free blocks of order n
    struct list blocks[ORDERS];
    u32 total, free; // frames; `free` without those in per-CPU caches
    u32 reserve;     // frames not used for memory of tasks
    u32 roots;       // frames not used for ordinary users (frame.c)
};
extern struct zone zones[ZONES];

#define CACHE_MAX 32u // frames of each zone in a CPU's cache
#define ZEROED_MAX 16u

// A per-CPU cache belongs to its CPU while interrupts are off there. Other CPUs
// read the counts at any time, for statistics only: accesses to these and to a
// zone's `free` are marked.
struct frame_cache {
    u32 count[ZONES];
    struct frame *frames[ZONES][CACHE_MAX];
    u32 zeroed_count; // free low frames that contain only zeros
    struct frame *zeroed[ZEROED_MAX];
    s32 by_use[FRAME_USES]; // allocated - freed; only the CPUs' sum is valid
};
extern struct frame_cache *frame_caches[CPU_MAX];

extern struct frame *frames;
extern u32 frame_count;
extern u32 any_zone; // first zone for FRAME_ANY: the high zone if there is one
extern u64 unmanaged_frames; // usable by the memory map, but not managed

static inline u32 frame_number(const struct frame *f)
{
    return (u32)(f - frames);
}

// With the zone locked. buddy_alloc: a block of this order, or NULL.
struct frame *buddy_alloc(struct zone *z, u32 order);
void buddy_free(struct zone *z, struct frame *f, u32 order);
