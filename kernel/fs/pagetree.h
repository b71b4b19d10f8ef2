// Radix tree from page numbers to frames: 64 slots a node, as high as the
// largest page number needs. A tree of page 0 alone has no node.
//
// The owner locks it. Never sleeps.
#pragma once

#include "kernel/mm/frame.h"

struct pagetree {
    void *root; // height 0: the frame of page 0
    u32 height;
};

// The frame of a page, NULL when there is none.
struct frame *pagetree_get(const struct pagetree *t, u32 index);
// Inserts a frame at an empty index. 0 or -ENOMEM.
int pagetree_insert(struct pagetree *t, u32 index, struct frame *f);
// Removes up to `max` frames of pages from `first` on; returns how many there
// were. Fewer than `max`: none are left.
u32 pagetree_take(struct pagetree *t, u32 first, struct frame **out, u32 max);
