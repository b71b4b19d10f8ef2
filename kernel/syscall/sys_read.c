// Calls that transfer data: read, write and their vector and position forms.
//
// A seekable file is read and written under its pos_lock, unless only this
// thread can reach it. Devices, pipes and terminals are transferred without it.
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/fs/path.h"
#include "kernel/mm/heap.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/vector.h"

typedef int (*transfer_fn)(struct file *f, struct io *io, u64 *pos);

static NOINLINE int cannot_transfer(const struct file *f)
{
    if (f->vnode && vnode_is_dir(f->vnode))
        return -EISDIR;
    return -EINVAL;
}

// 0 and the operation in *fn, or the error.
static ALWAYS_INLINE int find_operation(const struct file *f, bool write,
                                        transfer_fn *fn)
{
    if (unlikely(!(write ? file_writable(f) : file_readable(f))))
        return -EBADF;
    *fn = write ? f->ops->write : f->ops->read;
    if (unlikely(!*fn))
        return cannot_transfer(f);
    return 0;
}

// At the file's own position.
static ALWAYS_INLINE int transfer(const struct fd_ref *r, struct io *io,
                                  bool write)
{
    struct file *f = r->file;
    transfer_fn fn;
    int err = find_operation(f, write, &fn);
    if (unlikely(err || !io->left))
        return err;
    if (!f->ops->seekable || (!r->counted && READ_ONCE(f->refs) == 1))
        return fn(f, io, &f->pos);
    mutex_lock(&f->pos_lock);
    int done = fn(f, io, &f->pos);
    mutex_unlock(&f->pos_lock);
    return done;
}

static int transfer_at(const struct fd_ref *r, struct io *io, bool write,
                       u64 pos)
{
    assert_checked(r->file);
    transfer_fn fn;
    int err = find_operation(r->file, write, &fn);
    if (err)
        return err;
    if (!r->file->ops->seekable)
        return -ESPIPE;
    if ((s64)pos < 0)
        return -EINVAL;
    return io->left ? fn(r->file, io, &pos) : 0;
}

static ALWAYS_INLINE s32 transfer_single(u32 fd, u32 addr, u32 n, bool write)
{
    struct fd_ref r;
    n = MIN(n, TRANSFER_MAX);
    struct iovec_k part = { .base = addr, .len = n };
    struct io io = { .iov = &part, .count = 1, .left = n };
    int err = fd_borrow(fd, &r);
    if (unlikely(err))
        return err;
    int done = transfer(&r, &io, write);
    fd_return(&r);
    return done;
}

s32 sys_read(u32 fd, u32 buffer, u32 count)
{
    return transfer_single(fd, buffer, count, false);
}

s32 sys_write(u32 fd, u32 buffer, u32 count)
{
    return transfer_single(fd, buffer, count, true);
}

static s32 transfer_single_at(u32 fd, u32 addr, u32 n, bool write, u64 pos)
{
    struct fd_ref r;
    struct iovec_k part;
    struct io io;
    int err = fd_borrow(fd, &r);
    if (err)
        return err;
    io_init(&io, &part, addr, MIN(n, TRANSFER_MAX), false);
    int done = transfer_at(&r, &io, write, pos);
    fd_return(&r);
    return done;
}

s32 sys_pread64(u32 fd, u32 buffer, u32 count, u32 offset_low, u32 offset_high)
{
    return transfer_single_at(fd, buffer, count, false,
                              (u64)offset_high << 32 | offset_low);
}

s32 sys_pwrite64(u32 fd, u32 buffer, u32 count, u32 offset_low, u32 offset_high)
{
    return transfer_single_at(fd, buffer, count, true,
                              (u64)offset_high << 32 | offset_low);
}

// --- vectors ----------------------------------------------------------------

// `pos` NULL: the file's own position.
static s32 transfer_vector(u32 fd, u32 addr, u32 count, bool write,
                           const u64 *pos)
{
    struct fd_ref r;
    struct vector v;
    int done = fd_borrow(fd, &r);
    if (done)
        return done;
    done = vector_get(&v, addr, count);
    if (!done) {
        done = pos ? transfer_at(&r, &v.io, write, *pos)
                   : transfer(&r, &v.io, write);
        vector_put(&v);
    }
    fd_return(&r);
    return done;
}

s32 sys_readv(u32 fd, u32 vector, u32 count)
{
    return transfer_vector(fd, vector, count, false, NULL);
}

s32 sys_writev(u32 fd, u32 vector, u32 count)
{
    return transfer_vector(fd, vector, count, true, NULL);
}

s32 sys_preadv(u32 fd, u32 vector, u32 count, u32 offset_low, u32 offset_high)
{
    u64 pos = (u64)offset_high << 32 | offset_low;
    return transfer_vector(fd, vector, count, false, &pos);
}

s32 sys_pwritev(u32 fd, u32 vector, u32 count, u32 offset_low, u32 offset_high)
{
    u64 pos = (u64)offset_high << 32 | offset_low;
    return transfer_vector(fd, vector, count, true, &pos);
}

// --- sendfile ---------------------------------------------------------------

#define SENDFILE_CHUNK 4096u

// Sends one buffer from `pos` of `in`. Bytes, 0 at the end, or -errno.
static int send_chunk(struct file *in, u64 pos, const struct fd_ref *out,
                      void *buf, size_t n)
{
    assert_checked(n && n <= SENDFILE_CHUNK && in->ops->seekable);
    struct iovec_k part;
    struct io io;
    io_init(&io, &part, (u32)buf, n, true);
    int got = in->ops->read(in, &io, &pos);
    if (got <= 0)
        return got;
    io_init(&io, &part, (u32)buf, (size_t)got, true);
    return transfer(out, &io, true);
}

static int send_bytes(struct file *in, u64 *pos, const struct fd_ref *out,
                      size_t n)
{
    void *buf = kmalloc(SENDFILE_CHUNK);
    size_t done = 0;
    int moved = 0;
    if (!buf)
        return -ENOMEM;
    while (done < n && !(done && signal_waiting())) {
        size_t part = MIN(n - done, (size_t)SENDFILE_CHUNK);
        moved = send_chunk(in, *pos, out, buf, part);
        if (moved <= 0)
            break;
        *pos += (u32)moved;
        done += (size_t)moved;
        if ((size_t)moved < part)
            break;
    }
    kfree(buf);
    return done ? (int)done : moved;
}

static int check_sendfile(const struct file *in, const struct file *out)
{
    transfer_fn fn;
    int err = find_operation(in, false, &fn);
    if (!err)
        err = find_operation(out, true, &fn);
    if (err)
        return err;
    bool fits = in->ops->seekable && !(READ_ONCE(out->flags) & O_APPEND);
    return fits ? 0 : -EINVAL;
}

static int sendfile(u32 out_fd, u32 in_fd, u64 *pos, u32 n)
{
    struct fd_ref in, out;
    int err = fd_borrow(in_fd, &in);
    if (err)
        return err;
    err = fd_borrow(out_fd, &out);
    if (err) {
        fd_return(&in);
        return err;
    }
    int done = check_sendfile(in.file, out.file);
    if (!done) {
        // The file's own position is updated at the end only: if its lock were
        // held while writing, the write could take the same lock again.
        u64 at = pos ? *pos : file_position(in.file);
        done = send_bytes(in.file, &at, &out, MIN(n, TRANSFER_MAX));
        if (pos)
            *pos = at;
        else
            file_set_position(in.file, at);
    }
    fd_return(&in);
    fd_return(&out);
    return done;
}

s32 sys_sendfile64(u32 out, u32 in, u32 offset, u32 count)
{
    u64 pos;
    if (!offset)
        return sendfile(out, in, NULL, count);
    if (copy_from_user(&pos, offset, sizeof(pos)))
        return -EFAULT;
    if ((s64)pos < 0)
        return -EINVAL;
    s32 done = sendfile(out, in, &pos, count);
    return copy_to_user(offset, &pos, sizeof(pos)) ? -EFAULT : done;
}

s32 sys_sendfile(u32 out, u32 in, u32 offset, u32 count)
{
    u32 narrow;
    if (!offset)
        return sendfile(out, in, NULL, count);
    if (user_load_u32(offset, &narrow))
        return -EFAULT;
    if ((s32)narrow < 0)
        return -EINVAL;
    u64 pos = narrow;
    s32 done = sendfile(out, in, &pos, count);
    return user_store_u32(offset, (u32)pos) ? -EFAULT : done;
}
