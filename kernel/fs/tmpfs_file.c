// tmpfs: the contents of regular files. Pages are frames of the low zone,
// shared with the address spaces that map them; holes have no frame.
//
// A read or write takes a reference to one page at a time, drops the lock and
// copies the bytes. So user memory is accessed with no lock but write_lock,
// which the page fault path does not take. Each write is serialised with other
// writes and truncations of the file, which makes appends atomic. A truncated
// frame lives on in the mappings that contain it.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/tmpfs.h"
#include "kernel/task/signal.h"
#include "kernel/task/users.h"
#include "lib/string.h"

#define SIZE_MAX_TMPFS (1ull << 43) // its page number fits 32 bits, with margin
#define TAKE_AT_ONCE 32u            // frames freed per hold of the lock

static u32 pages_for(u64 size)
{
    return (u32)((size + PAGE_SIZE - 1) >> PAGE_SHIFT);
}

// The page's frame, referenced, or NULL.
static struct frame *find_page(struct tmpfs_node *n, u32 index)
{
    spin_assert_held(&n->v.lock);
    struct frame *frame = pagetree_get(&n->file, index);
    if (frame)
        frame_ref(frame);
    return frame;
}

// Inserts a new frame into a hole; takes over the reference. Under the lock.
static int insert_page(struct tmpfs_node *n, u32 index, struct frame *frame)
{
    spin_assert_held(&n->v.lock);
    assert_checked(frame && frame->order == 0);
    int err = pagetree_insert(&n->file, index, frame);
    if (err) {
        frame_unref(frame);
        return -ENOSPC;
    }
    n->v.pages++;
    return 0;
}

// The same, charged to the node's payer. 0, -ENOSPC, -EDQUOT.
static int add_page(struct tmpfs_node *n, u32 index, struct frame *frame)
{
    spin_assert_held(&n->v.lock);
    if (!payer_charge(n->payer, PAGE_SIZE)) {
        frame_unref(frame);
        return -EDQUOT;
    }
    int err = insert_page(n, index, frame);
    if (err)
        user_discharge(n->payer, PAGE_SIZE);
    else
        n->paid_pages++;
    return err;
}

static struct frame *new_frame(u32 flags)
{
    return tmpfs_may_grow() ? frame_alloc(0, FRAME_LOW | flags, FRAME_FILE)
                            : NULL;
}

// The page's frame, referenced; a hole gets a new one. Under the lock.
static int find_or_add_page(struct tmpfs_node *n, u32 index, struct frame **out)
{
    spin_assert_held(&n->v.lock);
    *out = find_page(n, index);
    if (*out)
        return 0;
    struct frame *frame = new_frame(FRAME_ZERO);
    if (!frame)
        return -ENOSPC;
    int err = add_page(n, index, frame);
    if (!err) {
        frame_ref(frame);
        *out = frame;
    }
    return err;
}

int tmpfs_add_page(struct tmpfs_node *n, u32 index, struct frame *frame)
{
    spin_lock(&n->v.lock);
    int err = insert_page(n, index, frame);
    spin_unlock(&n->v.lock);
    return err ? -ENOMEM : 0;
}

int tmpfs_get_page(struct vnode *v, u32 index, bool write UNUSED,
                   struct frame **out)
{
    struct tmpfs_node *n = tmpfs_node(v);
    int err = -EIO;
    if (vnode_type(v) != S_IFREG)
        return -EIO;
    spin_lock(&v->lock);
    // A hole gets its frame even for a reader: mappings that share the file
    // must see the same frame after a later write. Without memory the access
    // fails like one beyond the end.
    if (index < pages_for(v->size) && !find_or_add_page(n, index, out))
        err = 0;
    spin_unlock(&v->lock);
    return err;
}

// The next bytes of a read at `pos`: their number, up to the page's end, and
// the frame (referenced; NULL: a hole).
static size_t bytes_at(struct tmpfs_node *n, u64 pos, struct frame **frame)
{
    size_t in_page = PAGE_SIZE - ((u32)pos & ~PAGE_MASK);
    size_t bytes = 0;
    spin_lock(&n->v.lock);
    if (pos < n->v.size) {
        bytes = (size_t)MIN((u64)in_page, n->v.size - pos);
        *frame = find_page(n, (u32)(pos >> PAGE_SHIFT));
    }
    spin_unlock(&n->v.lock);
    return bytes;
}

static int result(size_t done, int err)
{
    return done ? (int)done : err;
}

static int tmpfs_read(struct file *f, struct io *io, u64 *pos)
{
    struct tmpfs_node *n = tmpfs_node(f->vnode);
    size_t wanted = io->left;
    u64 start = *pos;
    int err = 0;
    while (io->left && !err && !(io->left < wanted && signal_fatal())) {
        struct frame *frame;
        u64 at = start + (wanted - io->left);
        size_t bytes = bytes_at(n, at, &frame);
        if (!bytes)
            break;
        bytes = MIN(bytes, io->left);
        if (frame) {
            u8 *page = frame_va(frame);
            err = io_to(io, page + ((u32)at & ~PAGE_MASK), bytes);
            frame_unref(frame);
        } else {
            err = io_zero(io, bytes);
        }
    }
    *pos = start + (wanted - io->left);
    return result(wanted - io->left, err);
}

// Writes a whole page into a hole: the frame need not be zeroed first. It is
// inserted once it is full; if a concurrent page fault has inserted a frame,
// the data is copied to that.
static int write_whole_page(struct tmpfs_node *n, u32 index, struct io *io)
{
    mutex_assert_held(&n->write_lock);
    assert_checked(io->left >= PAGE_SIZE);
    struct frame *there, *frame = new_frame(0);
    if (!frame)
        return -ENOSPC;
    size_t before = io->left;
    int err = io_from(io, frame_va(frame), PAGE_SIZE);
    size_t done = before - io->left;
    memset((u8 *)frame_va(frame) + done, 0, PAGE_SIZE - done);
    spin_lock(&n->v.lock);
    there = find_page(n, index);
    int refused = !there && done ? add_page(n, index, frame) : 0;
    spin_unlock(&n->v.lock);
    if (there) {
        memcpy(frame_va(there), frame_va(frame), done);
        frame_unref(there);
    }
    if (there || !done)
        frame_unref(frame);
    return refused ? refused : err;
}

static int write_part(struct tmpfs_node *n, u64 pos, size_t bytes,
                      struct io *io)
{
    mutex_assert_held(&n->write_lock);
    assert(bytes && pos % PAGE_SIZE + bytes <= PAGE_SIZE);
    u32 index = (u32)(pos >> PAGE_SHIFT);
    struct frame *frame;
    int err = 0;
    spin_lock(&n->v.lock);
    frame = find_page(n, index);
    if (!frame && bytes < PAGE_SIZE)
        err = find_or_add_page(n, index, &frame);
    spin_unlock(&n->v.lock);
    if (err)
        return err;
    if (!frame)
        return write_whole_page(n, index, io);
    u8 *page = frame_va(frame);
    err = io_from(io, page + ((u32)pos & ~PAGE_MASK), bytes);
    frame_unref(frame);
    return err;
}

// Under write_lock. Bytes written or -errno.
static int write_at(struct tmpfs_node *n, struct io *io, u64 start)
{
    mutex_assert_held(&n->write_lock);
    size_t done = 0;
    int err = 0;
    u64 limit = vnode_size_limit();
    if (unlikely(start >= limit) && io->left)
        return vnode_too_large();
    while (io->left && !err && !(done && signal_fatal())) {
        u64 at = start + done;
        size_t before = io->left;
        size_t bytes = PAGE_SIZE - ((u32)at & ~PAGE_MASK);
        if (at >= MIN(limit, SIZE_MAX_TMPFS)) {
            err = -EFBIG;
            break;
        }
        bytes = (size_t)MIN(bytes, limit - at);
        err = write_part(n, at, MIN(bytes, before), io);
        if (err != -ENOSPC && err != -EDQUOT) // the copied page was dropped
            done += before - io->left;
    }
    if (!done)
        return err;
    struct timespec_k now = vfs_now();
    spin_lock(&n->v.lock);
    n->v.size = MAX(n->v.size, start + done);
    n->v.mtime = n->v.ctime = now;
    vnode_written(&n->v);
    spin_unlock(&n->v.lock);
    return (int)done;
}

static int tmpfs_write(struct file *f, struct io *io, u64 *pos)
{
    struct tmpfs_node *n = tmpfs_node(f->vnode);
    mutex_lock(&n->write_lock);
    if (READ_ONCE(f->flags) & O_APPEND)
        *pos = n->v.size; // size changes under write_lock only
    int done = write_at(n, io, *pos);
    mutex_unlock(&n->write_lock);
    if (done > 0)
        *pos += (u32)done;
    return done;
}

// Frees the pages from `first` on, in batches.
void tmpfs_drop_pages(struct tmpfs_node *n, u32 first)
{
    struct frame *frames[TAKE_AT_ONCE];
    u32 count;
    do {
        spin_lock(&n->v.lock);
        count = pagetree_take(&n->file, first, frames, TAKE_AT_ONCE);
        u32 paid = MIN(count, n->paid_pages);
        n->v.pages -= count;
        n->paid_pages -= paid;
        spin_unlock(&n->v.lock);
        for (u32 i = 0; i < count; i++)
            frame_unref(frames[i]);
        if (paid)
            user_discharge(n->payer, paid * PAGE_SIZE);
    } while (count == TAKE_AT_ONCE);
}

// The part of the last page after the end must be zero if the file grows.
static void zero_tail(struct tmpfs_node *n, u64 size)
{
    mutex_assert_held(&n->write_lock);
    u32 offset = (u32)size & ~PAGE_MASK;
    if (!offset)
        return;
    spin_lock(&n->v.lock);
    struct frame *frame = find_page(n, (u32)(size >> PAGE_SHIFT));
    spin_unlock(&n->v.lock);
    if (!frame)
        return;
    memset((u8 *)frame_va(frame) + offset, 0, PAGE_SIZE - offset);
    frame_unref(frame);
}

int tmpfs_truncate(struct vnode *v, u64 size)
{
    struct tmpfs_node *n = tmpfs_node(v);
    if (size > SIZE_MAX_TMPFS)
        return -EFBIG;
    struct timespec_k now = vfs_now();
    mutex_lock(&n->write_lock);
    if (size > v->size && size > vnode_size_limit()) {
        mutex_unlock(&n->write_lock);
        return vnode_too_large();
    }
    spin_lock(&v->lock);
    bool shrinks = size < v->size;
    v->size = size;
    v->mtime = v->ctime = now;
    vnode_written(v);
    spin_unlock(&v->lock);
    // From here on no page fault adds pages beyond the new end.
    if (shrinks) {
        tmpfs_drop_pages(n, pages_for(size));
        zero_tail(n, size);
    }
    mutex_unlock(&n->write_lock);
    return 0;
}

const struct file_ops tmpfs_file_ops = {
    .read = tmpfs_read,
    .write = tmpfs_write,
    .seekable = true,
};
