// Calls that create, copy and close descriptors.
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/fs/locks.h"
#include "kernel/fs/pipe.h"
#include "kernel/syscall/at_path.h"
#include "kernel/syscall/syscall.h"

#define O_TMPFILE 020000000u

s32 sys_openat(u32 dir, u32 path, u32 flags, u32 mode)
{
    struct at_path w;
    struct file *f;
    if ((flags & O_TMPFILE) && !(flags & O_PATH))
        return -EOPNOTSUPP;
    int err = at_path_get(&w, dir, path);
    if (err)
        return err;
    mode &= ~READ_ONCE(current_task()->umask);
    err = vfs_open(w.at, w.path.text, flags, mode & 07777, &f);
    at_path_put(&w);
    return err ? err : fd_install(f, flags & O_CLOEXEC, 0);
}

s32 sys_close(u32 fd)
{
    return fd_close(fd);
}

// --- copies -----------------------------------------------------------------

static s32 duplicate(u32 fd, u32 from, bool cloexec)
{
    struct file *f;
    int err = fd_get(fd, &f);
    return err ? err : fd_install(f, cloexec, from);
}

static s32 duplicate_to(u32 fd, u32 to, bool cloexec)
{
    struct file *f;
    int err = fd_get(fd, &f);
    return err ? err : fd_replace(f, to, cloexec);
}

s32 sys_dup(u32 fd)
{
    return duplicate(fd, 0, false);
}

s32 sys_dup2(u32 fd, u32 new_fd)
{
    bool cloexec;
    if (fd == new_fd)
        return fd_cloexec(fd, false, false, &cloexec) ? -EBADF : (s32)fd;
    return duplicate_to(fd, new_fd, false);
}

s32 sys_dup3(u32 fd, u32 new_fd, u32 flags)
{
    if (fd == new_fd || (flags & ~O_CLOEXEC))
        return -EINVAL;
    return duplicate_to(fd, new_fd, flags & O_CLOEXEC);
}

// --- pipes ------------------------------------------------------------------

s32 sys_pipe2(u32 fds, u32 flags)
{
    struct file *r, *w;
    s32 fd[2];
    if (flags & ~(O_CLOEXEC | O_NONBLOCK))
        return -EINVAL;
    int err = pipe_create(flags & O_NONBLOCK, &r, &w);
    if (err)
        return err;
    fd[0] = fd_install(r, flags & O_CLOEXEC, 0);
    if (fd[0] < 0) {
        file_unref(w);
        return fd[0];
    }
    fd[1] = fd_install(w, flags & O_CLOEXEC, 0);
    if (fd[1] < 0) {
        fd_close((u32)fd[0]);
        return fd[1];
    }
    if (!copy_to_user(fds, fd, sizeof(fd)))
        return 0;
    fd_close((u32)fd[0]);
    fd_close((u32)fd[1]);
    return -EFAULT;
}

// --- locks ------------------------------------------------------------------

#define LOCK_SH 1u
#define LOCK_EX 2u
#define LOCK_NB 4u
#define LOCK_UN 8u

static int flock_file(struct file *f, u32 operation)
{
    struct lock_range range = { .start = 0, .end = ~0ull };
    if (READ_ONCE(f->flags) & O_PATH)
        return -EBADF;
    if (!f->vnode)
        return -EINVAL;
    switch (operation & ~LOCK_NB) {
    case LOCK_SH:
        range.type = LOCK_READ;
        break;
    case LOCK_EX:
        range.type = LOCK_WRITE;
        break;
    case LOCK_UN:
        range.type = LOCK_NONE;
        break;
    default:
        return -EINVAL;
    }
    return locks_set(f->vnode, f, &range, !(operation & LOCK_NB));
}

s32 sys_flock(u32 fd, u32 operation)
{
    struct fd_ref r;
    int err = fd_borrow(fd, &r);
    if (err)
        return err;
    err = flock_file(r.file, operation);
    fd_return(&r);
    return err;
}

// struct flock and struct flock64.
struct flock32 {
    s16 type, whence;
    s32 start, len, pid;
};
_Static_assert(sizeof(struct flock32) == 16, "struct flock of the ABI");
struct flock64 {
    s16 type, whence;
    s64 start, len;
    s32 pid;
} PACKED;
_Static_assert(sizeof(struct flock64) == 24, "struct flock64 of the ABI");

static int flock_from_user(struct flock64 *l, u32 addr, bool wide)
{
    struct flock32 narrow;
    if (wide)
        return copy_from_user(l, addr, sizeof(*l));
    int err = copy_from_user(&narrow, addr, sizeof(narrow));
    if (!err)
        *l = (struct flock64){ narrow.type, narrow.whence, narrow.start,
                               narrow.len, narrow.pid };
    return err;
}

static int flock_to_user(u32 addr, const struct flock64 *l, bool wide)
{
    struct flock32 narrow = { l->type, l->whence, (s32)l->start, (s32)l->len,
                              l->pid };
    if (wide)
        return copy_to_user(addr, l, sizeof(*l));
    return copy_to_user(addr, &narrow, sizeof(narrow));
}

// The range of start, whence and len; a negative len ends before the start, 0
// extends to the end of the file, however far it grows.
static int range_of(struct file *f, const struct flock64 *l,
                    struct lock_range *r)
{
    assert_checked(f->vnode);
    s64 base = 0, start, end = INT64_MAX;
    if (l->whence == 1) {
        base = (s64)file_position(f);
    } else if (l->whence == 2) {
        spin_lock(&f->vnode->lock);
        base = (s64)f->vnode->size;
        spin_unlock(&f->vnode->lock);
    } else if (l->whence != 0) {
        return -EINVAL;
    }
    if (l->type < LOCK_READ || l->type > LOCK_NONE)
        return -EINVAL;
    if (__builtin_add_overflow(base, l->start, &start))
        return -EOVERFLOW;
    if (l->len && __builtin_add_overflow(start, l->len - 1, &end))
        return -EOVERFLOW;
    if (l->len < 0) {
        end = start - 1;
        if (__builtin_add_overflow(start, l->len, &start))
            return -EINVAL;
    }
    if (start < 0 || end < start)
        return -EINVAL;
    *r = (struct lock_range){
        .type = (enum lock_type)l->type,
        .record = true,
        .task = current_task()->id,
        .start = (u64)start,
        .end = (u64)end,
    };
    return 0;
}

enum record_call { RECORD_GET, RECORD_SET, RECORD_SET_WAIT };
_Static_assert(LOCK_READ == 0 && LOCK_WRITE == 1 && LOCK_NONE == 2,
               "F_RDLCK, F_WRLCK, F_UNLCK");

// If another thread has closed the descriptor concurrently, the close dropped
// the table's locks before this one was set: drop this one, too.
static int set_record(u32 fd, struct file *f, const struct lock_range *r,
                      bool wait)
{
    const struct files *owner = current_task()->files;
    int err = locks_set(f->vnode, owner, r, wait);
    if (err || r->type == LOCK_NONE || fd_is(fd, f))
        return err;
    locks_drop(f->vnode, owner);
    return -EBADF;
}

static int record_lock(u32 fd, struct file *f, enum record_call call, u32 addr,
                       bool wide)
{
    struct flock64 l;
    struct lock_range r;
    if (!f->vnode || (READ_ONCE(f->flags) & O_PATH))
        return -EBADF;
    int err = flock_from_user(&l, addr, wide);
    if (!err)
        err = range_of(f, &l, &r);
    if (err)
        return err;
    if (call != RECORD_GET) {
        if ((r.type == LOCK_READ && !file_readable(f)) ||
            (r.type == LOCK_WRITE && !file_writable(f)))
            return -EBADF;
        return set_record(fd, f, &r, call == RECORD_SET_WAIT);
    }
    locks_test(f->vnode, current_task()->files, &r);
    l.type = (s16)r.type;
    if (r.type != LOCK_NONE) {
        l.whence = 0;
        l.start = (s64)r.start;
        l.len = r.end == INT64_MAX ? 0 : (s64)(r.end - r.start + 1);
        l.pid = (s32)r.task;
    }
    return flock_to_user(addr, &l, wide);
}

// --- fcntl ------------------------------------------------------------------

#define F_DUPFD 0
#define F_GETFD 1
#define F_SETFD 2
#define F_GETFL 3
#define F_SETFL 4
#define F_GETLK 5
#define F_SETLK 6
#define F_SETLKW 7
#define F_GETLK64 12
#define F_SETLK64 13
#define F_SETLKW64 14
#define F_DUPFD_CLOEXEC 1030
#define F_SETPIPE_SZ 1031
#define F_GETPIPE_SZ 1032
#define FD_CLOEXEC 1u
#define O_ASYNC 020000u  // no file sends SIGIO
#define O_DIRECT 040000u // no file has a cache to bypass

static int file_fcntl(u32 fd, struct file *f, u32 cmd, u32 arg)
{
    const u32 settable = O_APPEND | O_NONBLOCK;
    switch (cmd) {
    case F_GETFL:
        return (int)READ_ONCE(f->flags);
    case F_SETFL:
        if (READ_ONCE(f->flags) & O_PATH)
            return -EBADF;
        if (arg & ~READ_ONCE(f->flags) & (O_ASYNC | O_DIRECT))
            return -EINVAL;
        WRITE_ONCE(f->flags,
                   (READ_ONCE(f->flags) & ~settable) | (arg & settable));
        return 0;
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
        return record_lock(fd, f, (enum record_call)(cmd - F_GETLK), arg,
                           false);
    case F_GETLK64:
    case F_SETLK64:
    case F_SETLKW64:
        return record_lock(fd, f, (enum record_call)(cmd - F_GETLK64), arg,
                           true);
    case F_GETPIPE_SZ:
        return pipe_is(f) ? (int)PIPE_SIZE : -EBADF;
    case F_SETPIPE_SZ:
        if (!pipe_is(f))
            return -EBADF;
        return arg <= PIPE_SIZE ? (int)PIPE_SIZE : -EPERM;
    default:
        return -EINVAL;
    }
}

static s32 duplicate_from(u32 fd, u32 from, bool cloexec)
{
    if (from >=
        MIN(READ_ONCE(current_task()->limits[LIMIT_NOFILE].soft), FD_MAX))
        return -EINVAL;
    return duplicate(fd, from, cloexec);
}

s32 sys_fcntl64(u32 fd, u32 command, u32 argument)
{
    struct fd_ref r;
    bool cloexec;
    int err;
    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return duplicate_from(fd, argument, command == F_DUPFD_CLOEXEC);
    case F_GETFD:
        err = fd_cloexec(fd, false, false, &cloexec);
        return err ? err : cloexec ? (s32)FD_CLOEXEC : 0;
    case F_SETFD:
        return fd_cloexec(fd, true, argument & FD_CLOEXEC, &cloexec);
    }
    err = fd_borrow(fd, &r);
    if (err)
        return err;
    s32 result = file_fcntl(fd, r.file, command, argument);
    fd_return(&r);
    return result;
}
