// Zones of frames and the CPUs' caches in front of them; private to the frame
// allocator (buddy.c, frame.c, frame_init.c).
//
// One struct frame for each frame below `frame_count`, in an array that
// frame_init puts into the low zone; a frame's number is its index. Frames that
// are not RAM (or never handed out) lack FRAME_MANAGED.
#pragma once

#include "arch/cpu.h"
#include "kernel/mm/frame.h"
#include "kernel/sync/spinlock.h"

#define FRAME_MANAGED 1u // flags: RAM that is ours
#define FRAME_BLOCK 2u   // flags: first frame of a free buddy block

#define ORDERS 11u // blocks of 4 KiB to 4 MiB
#define ORDER_MAX (ORDERS - 1)

enum { ZONE_LOW, ZONE_HIGH, ZONES };

struct zone {
    struct spinlock lock; // guards all below
    u32 nonempty;         // bit n: there are free blocks of order n
    struct list blocks[ORDERS];
    u32 total, free; // frames; `free` without those in the CPUs' caches
    u32 reserve;     // the last ones are not for tasks' memory
    u32 roots;       // nor so many for what an ordinary user asks for
};
extern struct zone zones[ZONES];

#define CACHE_MAX 32u // frames that a CPU keeps of each zone
#define ZEROED_MAX 16u

// Belongs to its CPU while interrupts are off there. Others read the counts at
// any time, for statistics only: these and a zone's `free` are marked.
struct frame_cache {
    u32 count[ZONES];
    struct frame *frames[ZONES][CACHE_MAX];
    u32 zeroed_count; // low frames that came back full of zeros
    struct frame *zeroed[ZEROED_MAX];
    s32 by_use[FRAME_USES]; // allocated minus freed here: the sum counts
};
extern struct frame_cache frame_caches[CPU_MAX];

extern struct frame *frames;
extern u32 frame_count;
extern u32 any_zone; // where FRAME_ANY begins: the high zone if there is one
extern u64 unmanaged_frames; // usable by the memory map, but not by us

static inline u32 frame_number(const struct frame *f)
{
    return (u32)(f - frames);
}

// The zone is locked. A block of this order, or NULL.
struct frame *buddy_take(struct zone *z, u32 order);
void buddy_give(struct zone *z, struct frame *f, u32 order);
