// What the memory of a program needs of the files that it maps.
#pragma once

#include "lib/types.h"

struct frame;
struct vnode;

UPCALL void vnode_ref(struct vnode *v);
UPCALL void vnode_unref(struct vnode *v);

// Who may write to a file and the programs that run from it exclude each other.
// 0 or -ETXTBSY; who got 0 calls the other when it is over. Any context.
UPCALL int vnode_begin_writing(struct vnode *v);
UPCALL void vnode_end_writing(struct vnode *v);
UPCALL int vnode_begin_running(struct vnode *v);
UPCALL void vnode_end_running(struct vnode *v);

// It has pages that can be mapped.
UPCALL bool vnode_has_pages(const struct vnode *v);
// The frame (referenced) holding page `index` of such a file; allocates a hole
// when `write`, else may give a zero frame. -EIO beyond the end. Spinlocks
// only.
UPCALL int vnode_get_page(struct vnode *v, u32 index, bool write,
                          struct frame **out);
