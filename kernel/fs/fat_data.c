// Sticks and disks: what files contain; see fat_fs.h. A call holds the lock
// from its first to its last byte, so appends are whole.
#include "kernel/base/errno.h"
#include "kernel/fs/fat_fs.h"
#include "kernel/task/signal.h"
#include "lib/string.h"

// Bytes from `pos` to the next multiple of the buffer's size: all but the first
// and last transfers are of whole clusters.
static size_t chunk(u64 pos, size_t left)
{
    return MIN(left, FAT_BUFFER - (size_t)(pos % FAT_BUFFER));
}

static int read(struct file *f, struct io *io, u64 *pos)
{
    struct fat_vnode *n = fat_vnode(f->vnode);
    struct fat_fs *fs = n->fs;
    size_t done = 0;
    mutex_lock(&fs->lock);
    int err = fat_use(n);
    while (!err && io->left && *pos < n->node.size &&
           !(done && signal_fatal())) {
        int bytes = fat_read(&fs->fat, &n->node, (u32)*pos, fs->buffer,
                             (u32)chunk(*pos, io->left));
        err = bytes > 0 ? io_to(io, fs->buffer, (size_t)bytes) : bytes;
        if (bytes <= 0 || err)
            break;
        done += (size_t)bytes;
        *pos += (size_t)bytes;
    }
    mutex_unlock(&fs->lock);
    return done ? (int)done : err;
}

static int append_zeros(struct fat_vnode *n, u64 size)
{
    struct fat_fs *fs = n->fs;
    mutex_assert_held(&fs->lock);
    while (n->node.size < size) {
        size_t bytes = chunk(n->node.size, size - n->node.size > FAT_BUFFER
                                               ? FAT_BUFFER
                                               : (size_t)(size - n->node.size));
        if (signal_fatal())
            return -EINTR;
        memset(fs->buffer, 0, bytes);
        int done = fat_write(&fs->fat, &n->node, n->node.size, fs->buffer,
                             (u32)bytes, fat_now());
        if (done <= 0)
            return done ? done : -ENOSPC;
    }
    return 0;
}

// Makes the file longer, with zeros, or leaves it as it is. It may be killed.
static int extend(struct fat_vnode *n, u64 size)
{
    struct fat *f = &n->fs->fat;
    u32 before = n->node.size;
    if (size > (u64)f->clusters * f->cluster_sectors * FAT_SECTOR)
        return -ENOSPC;
    int err = append_zeros(n, size);
    if (err && n->node.size > before)
        fat_shrink(f, &n->node, before, fat_now());
    return err;
}

static int write_at(struct fat_vnode *n, struct io *io, u64 start)
{
    struct fat_fs *fs = n->fs;
    size_t done = 0;
    mutex_assert_held(&fs->lock);
    u64 limit = vnode_size_limit();
    if (start >= limit && io->left)
        return vnode_too_large();
    int err = start > UINT32_MAX ? -EFBIG : extend(n, start);
    while (!err && io->left && !(done && signal_fatal())) {
        u64 pos = start + done;
        size_t before = io->left, bytes = chunk(pos, io->left);
        if (pos >= MIN(limit, (u64)UINT32_MAX))
            err = -EFBIG;
        if (err)
            break;
        bytes = (size_t)MIN((u64)bytes, limit - pos);
        err = io_from(io, fs->buffer, bytes);
        bytes = before - io->left;
        int written = bytes ? fat_write(&fs->fat, &n->node, (u32)pos,
                                        fs->buffer, (u32)bytes, fat_now())
                            : 0;
        if (written < 0)
            err = written;
        else
            done += (size_t)written;
        if (written < (int)bytes)
            break; // full
    }
    return done ? (int)done : err;
}

static int write(struct file *f, struct io *io, u64 *pos)
{
    struct fat_vnode *n = fat_vnode(f->vnode);
    mutex_lock(&n->fs->lock);
    int done = fat_use(n);
    if (!done) {
        if (READ_ONCE(f->flags) & O_APPEND)
            *pos = n->node.size;
        done = write_at(n, io, *pos);
    }
    fat_show(n);
    mutex_unlock(&n->fs->lock);
    if (done > 0)
        *pos += (u32)done;
    return done;
}

int fat_truncate(struct vnode *v, u64 size)
{
    struct fat_vnode *n = fat_vnode(v);
    struct fat_fs *fs = n->fs;
    if (size > UINT32_MAX)
        return -EFBIG;
    if (size > v->size && size > vnode_size_limit())
        return vnode_too_large();
    mutex_lock(&fs->lock);
    int err = size ? fat_use(n) : 0; // a broken file can be emptied
    if (!err && size < n->node.size)
        err = fat_shrink(&fs->fat, &n->node, (u32)size, fat_now());
    else if (!err)
        err = extend(n, size);
    n->checked |= !err && !size;
    fat_show(n);
    mutex_unlock(&fs->lock);
    return err;
}

// Writes the number of free clusters. Who wants to know whether that has
// succeeded calls fsync.
static void release(struct file *f)
{
    struct fat_fs *fs = fat_vnode(f->vnode)->fs;
    if ((READ_ONCE(f->flags) & O_ACCMODE) == O_RDONLY)
        return;
    mutex_lock(&fs->lock);
    fat_sync(&fs->fat);
    mutex_unlock(&fs->lock);
}

const struct file_ops fat_file_ops = {
    .read = read,
    .write = write,
    .release = release,
    .seekable = true,
};
