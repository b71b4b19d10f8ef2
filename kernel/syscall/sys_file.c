// Calls on an open file other than reading and writing it.
#include "kernel/fs/dirent.h"
#include "kernel/fs/file.h"
#include "kernel/fs/mount.h"
#include "kernel/fs/path.h"
#include "kernel/mm/heap.h"
#include "kernel/syscall/at_path.h"
#include "kernel/syscall/syscall.h"
#include "lib/string.h"

// --- position ---------------------------------------------------------------

#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2

static u64 vnode_size(struct vnode *v)
{
    spin_lock(&v->lock);
    u64 size = v->size;
    spin_unlock(&v->lock);
    return size;
}

static int seek_file(struct file *f, s64 offset, u32 whence, u64 *pos)
{
    u64 base = 0;
    if (!f->ops->seekable)
        return -ESPIPE;
    if (whence > SEEK_END)
        return -EINVAL;
    if (whence == SEEK_END && f->vnode)
        base = vnode_size(f->vnode);
    mutex_lock(&f->pos_lock);
    if (whence == SEEK_CUR)
        base = f->pos;
    int err = 0;
    s64 target;
    if (__builtin_add_overflow((s64)base, offset, &target))
        err = -EOVERFLOW;
    else if (target < 0)
        err = -EINVAL;
    else
        *pos = f->pos = (u64)target;
    mutex_unlock(&f->pos_lock);
    return err;
}

static int seek(u32 fd, s64 offset, u32 whence, u64 *pos)
{
    struct fd_ref r;
    int err = fd_borrow(fd, &r);
    if (err)
        return err;
    err = READ_ONCE(r.file->flags) & O_PATH
              ? -EBADF
              : seek_file(r.file, offset, whence, pos);
    fd_return(&r);
    return err;
}

s32 sys_lseek(u32 fd, s32 offset, u32 whence)
{
    u64 pos;
    int err = seek(fd, (s32)offset, whence, &pos);
    if (err)
        return err;
    return pos > INT32_MAX ? -EOVERFLOW : (s32)pos;
}

s32 sys_llseek(u32 fd, u32 offset_high, u32 offset_low, u32 result, u32 whence)
{
    u64 pos;
    int err =
        seek(fd, (s64)((u64)offset_high << 32 | offset_low), whence, &pos);
    if (err)
        return err;
    return copy_to_user(result, &pos, sizeof(pos)) ? -EFAULT : 0;
}

// --- size -------------------------------------------------------------------

static int truncate_vnode(struct vnode *v, u64 size)
{
    if ((s64)size < 0)
        return -EINVAL;
    if (vnode_is_dir(v))
        return -EISDIR;
    if (vnode_type(v) != S_IFREG || !v->ops->truncate)
        return -EINVAL;
    return v->ops->truncate(v, size);
}

static s32 truncate_path(u32 path, u64 size)
{
    struct vnode *v;
    int err = at_path_lookup(AT_FDCWD, path, 0, &v);
    if (err)
        return err;
    err = vnode_is_dir(v) ? -EISDIR : vnode_may(v, MAY_W);
    if (!err)
        err = vnode_begin_writing(v);
    if (!err) {
        err = truncate_vnode(v, size);
        vnode_end_writing(v);
    }
    vnode_unref(v);
    return err;
}

static s32 truncate_fd(u32 fd, u64 size)
{
    struct fd_ref r;
    int err = fd_borrow(fd, &r);
    if (err)
        return err;
    if (READ_ONCE(r.file->flags) & O_PATH)
        err = -EBADF;
    else if (!file_writable(r.file) || !r.file->vnode)
        err = -EINVAL;
    else
        err = truncate_vnode(r.file->vnode, size);
    fd_return(&r);
    return err;
}

s32 sys_truncate64(u32 path, u32 length_low, u32 length_high)
{
    return truncate_path(path, (u64)length_high << 32 | length_low);
}

s32 sys_ftruncate64(u32 fd, u32 length_low, u32 length_high)
{
    return truncate_fd(fd, (u64)length_high << 32 | length_low);
}

// --- write-back: files are in memory, or on a stick -------------------------

static int sync_vnode(struct vnode *v)
{
    return v->ops->sync ? v->ops->sync(v) : 0;
}

static int sync_mount(const struct mount *m, void *arg UNUSED)
{
    sync_vnode(m->root);
    return 0;
}

s32 sys_sync(void)
{
    mount_for_each(sync_mount, NULL);
    return 0;
}

s32 sys_fsync(u32 fd)
{
    struct fd_ref r;
    int err = fd_borrow(fd, &r);
    if (err)
        return err;
    if (READ_ONCE(r.file->flags) & O_PATH)
        err = -EBADF;
    else if (!r.file->vnode || !r.file->ops->seekable)
        err = -EINVAL;
    else
        err = sync_vnode(r.file->vnode);
    fd_return(&r);
    return err;
}

// --- ioctl ------------------------------------------------------------------

#define FIONREAD 0x541b
#define FIONBIO 0x5421
#define FIONCLEX 0x5450
#define FIOCLEX 0x5451

// The changeable flags of an open file are stored as one word: concurrent
// changes of different flags may lose one; callers must synchronise them.
static void set_flags(struct file *f, u32 mask, u32 value)
{
    WRITE_ONCE(f->flags, (READ_ONCE(f->flags) & ~mask) | (value & mask));
}

static int unread_bytes(struct file *f, u32 arg)
{
    if (!f->vnode || vnode_type(f->vnode) != S_IFREG)
        return -ENOTTY;
    u64 size = vnode_size(f->vnode), pos = file_position(f);
    u64 left = pos < size ? size - pos : 0;
    return user_store_u32(arg, (u32)MIN(left, (u64)INT32_MAX));
}

static int file_ioctl(struct file *f, u32 cmd, u32 arg)
{
    u32 value;
    if (READ_ONCE(f->flags) & O_PATH)
        return -EBADF;
    if (cmd == FIONBIO) {
        if (user_load_u32(arg, &value))
            return -EFAULT;
        set_flags(f, O_NONBLOCK, value ? O_NONBLOCK : 0);
        return 0;
    }
    if (f->ops->ioctl)
        return f->ops->ioctl(f, cmd, arg);
    return cmd == FIONREAD ? unread_bytes(f, arg) : -ENOTTY;
}

s32 sys_ioctl(u32 fd, u32 request, u32 argument)
{
    struct fd_ref r;
    bool old;
    if (request == FIOCLEX || request == FIONCLEX)
        return fd_cloexec(fd, true, request == FIOCLEX, &old);
    int result = fd_borrow(fd, &r);
    if (result)
        return result;
    result = file_ioctl(r.file, request, argument);
    fd_return(&r);
    return result;
}

// --- directories ------------------------------------------------------------

#define DIRENT_HEAD 19u // of struct dirent64: up to the name
#define DIRENT_BUFFER 4096u

struct dirent64 {
    u64 ino;
    s64 off;
    u16 reclen;
    u8 type;
    char name[];
} PACKED;

// Entries are collected in the kernel, because user memory must not be accessed
// under namespace_lock.
struct dirent_buffer {
    struct dirent_sink sink;
    u8 *bytes;
    size_t size, used;
    bool full;
};

static bool take_entry(struct dirent_sink *s, u64 ino, u64 next_pos, u32 type,
                       const char *name, size_t len)
{
    struct dirent_buffer *b = container_of(s, struct dirent_buffer, sink);
    size_t size = ALIGN_UP(DIRENT_HEAD + len + 1, 8u);
    if (size > b->size - b->used) {
        b->full = true;
        return false;
    }
    struct dirent64 *d = (struct dirent64 *)(b->bytes + b->used);
    memset((u8 *)d + size - 8, 0, 8); // padding is copied to the user
    d->ino = ino;
    d->off = (s64)next_pos;
    d->reclen = (u16)size;
    d->type = (u8)type;
    memcpy(d->name, name, len);
    d->name[len] = '\0';
    b->used += size;
    return true;
}

static int list_directory(struct file *f, struct dirent_buffer *b)
{
    mutex_lock(&f->pos_lock);
    mutex_lock(&namespace_lock);
    int err = vnode_readdir(f->vnode, &f->pos, &b->sink);
    mutex_unlock(&namespace_lock);
    mutex_unlock(&f->pos_lock);
    if (err)
        return err;
    return !b->used && b->full ? -EINVAL : 0;
}

static int read_directory(struct file *f, u32 addr, u32 n)
{
    if (!file_readable(f))
        return -EBADF;
    if (!f->vnode || !vnode_is_dir(f->vnode))
        return -ENOTDIR;
    struct dirent_buffer b = { .sink.take = take_entry };
    b.size = MIN(n, DIRENT_BUFFER);
    b.bytes = kmalloc(MAX(b.size, 8u));
    if (!b.bytes)
        return -ENOMEM;
    int err = list_directory(f, &b);
    if (!err)
        err = copy_to_user(addr, b.bytes, b.used);
    kfree(b.bytes);
    return err ? err : (int)b.used;
}

s32 sys_getdents64(u32 fd, u32 buffer, u32 size)
{
    struct fd_ref r;
    int err = fd_borrow(fd, &r);
    if (err)
        return err;
    err = read_directory(r.file, buffer, size);
    fd_return(&r);
    return err;
}
