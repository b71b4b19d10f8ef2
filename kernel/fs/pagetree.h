// From page numbers to frames: a tree with 64 branches at each node, as high as
// the largest page number needs. One page takes no node at all.
//
// The owner locks it. Nothing sleeps.
#pragma once

#include "kernel/mm/frame.h"

struct pagetree {
    void *root; // height 0: the frame of page 0
    u32 height;
};

// The frame of a page, NULL when there is none.
struct frame *pagetree_get(const struct pagetree *t, u32 index);
// Enters a frame where none is. 0 or -ENOMEM.
int pagetree_insert(struct pagetree *t, u32 index, struct frame *f);
// Takes out up to `max` frames of pages from `first` on; how many there were.
// Fewer than `max`: no more are left.
u32 pagetree_take(struct pagetree *t, u32 first, struct frame **out, u32 max);
