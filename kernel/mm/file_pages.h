// The functions of vnodes that mapped files need.
#pragma once

#include "lib/types.h"

struct frame;
struct vnode;

UPCALL void vnode_ref(struct vnode *v);
UPCALL void vnode_unref(struct vnode *v);

// Writers of a file and programs running from it exclude each other. 0 or
// -ETXTBSY. After 0, the caller calls the matching _end_ function when done.
// Any context.
UPCALL int vnode_begin_writing(struct vnode *v);
UPCALL void vnode_end_writing(struct vnode *v);
UPCALL int vnode_begin_running(struct vnode *v);
UPCALL void vnode_end_running(struct vnode *v);

// Whether the file has pages that can be mapped.
UPCALL bool vnode_has_pages(const struct vnode *v);
// The frame of page `index` of such a file, with a reference for the caller.
// For a hole: with `write` a frame is allocated, else it may be a zero frame.
// -EIO beyond the end. Takes spinlocks only.
UPCALL int vnode_get_page(struct vnode *v, u32 index, bool write,
                          struct frame **out);
