// Vnodes: reference counts, creation, and reading from within the kernel.
//
// A name in a directory holds a reference to its vnode, so a vnode that can be
// found has refs > 0 while namespace_lock is held: none is ever revived.
#include "kernel/fs/vfs.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/locks.h"
#include "kernel/fs/mount.h"
#include "kernel/task/task.h"
#include "kernel/time/wallclock.h"
#include "lib/string.h"

struct mutex namespace_lock = MUTEX_INIT(namespace_lock, "namespace");

void vnode_ref(struct vnode *v)
{
    __atomic_fetch_add(&v->refs, 1, __ATOMIC_RELAXED);
}

static ALWAYS_INLINE bool unref(struct vnode *v)
{
    u32 before = __atomic_fetch_sub(&v->refs, 1, __ATOMIC_ACQ_REL);
    assert(before > 0);
    if (before > 1)
        return false;
    if (v->locks)
        locks_free(v->locks);
    return true;
}

bool vnode_unref_last(struct vnode *v)
{
    return unref(v);
}

void vnode_unref(struct vnode *v)
{
    if (unref(v) && v->ops->release)
        v->ops->release(v);
}

// Adds one use: a writer (1) or a running program (-1).
static int begin_use(struct vnode *v, s32 step)
{
    s32 users = READ_ONCE(v->users);
    do {
        if (step > 0 ? users < 0 : users > 0)
            return -ETXTBSY;
    } while (!__atomic_compare_exchange_n(&v->users, &users, users + step, true,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return 0;
}

static void end_use(struct vnode *v, s32 step)
{
    s32 before = __atomic_fetch_sub(&v->users, step, __ATOMIC_ACQ_REL);
    assert(step > 0 ? before > 0 : before < 0);
}

int vnode_begin_writing(struct vnode *v)
{
    return begin_use(v, 1);
}

void vnode_end_writing(struct vnode *v)
{
    end_use(v, 1);
}

int vnode_begin_running(struct vnode *v)
{
    return begin_use(v, -1);
}

void vnode_end_running(struct vnode *v)
{
    end_use(v, -1);
}

// Without group execute, S_ISGID historically meant mandatory locking: it is
// kept.
void vnode_drop_set_id(struct vnode *v)
{
    spin_assert_held(&v->lock);
    u32 mode = v->mode, dropped = S_ISUID;
    if (mode & S_IXGRP)
        dropped |= S_ISGID;
    if (vnode_type(v) != S_IFDIR)
        WRITE_ONCE(v->mode, mode & ~dropped);
}

void vnode_written(struct vnode *v)
{
    spin_assert_held(&v->lock);
    if (unlikely(v->mode & (S_ISUID | S_ISGID)) && !is_root())
        vnode_drop_set_id(v);
}

u64 vnode_size_limit(void)
{
    u32 limit = READ_ONCE(current_task()->limits[LIMIT_FSIZE].soft);
    return limit == LIMIT_NONE ? ~0ull : limit;
}

int vnode_too_large(void)
{
    struct siginfo info = { .signo = SIGXFSZ, .code = SI_KERNEL };
    signal_send_thread(current, SIGXFSZ, &info);
    return -EFBIG;
}

u64 vnode_new_ino(void)
{
    static u64 last;
    static struct spinlock lock = SPINLOCK_INIT("ino");
    spin_lock(&lock);
    u64 ino = ++last;
    spin_unlock(&lock);
    return ino;
}

void vnode_init(struct vnode *v, struct mount *m, u32 mode,
                const struct vnode_ops *ops, const struct file_ops *file_ops)
{
    assert(ops);
    *v = (struct vnode){
        .refs = 1,
        .nlink = 1,
        .mode = mode,
        .ino = vnode_new_ino(),
        .mount = m,
        .ops = ops,
        .file_ops = file_ops,
    };
    spin_init(&v->lock, "vnode");
    v->atime = v->mtime = v->ctime = vfs_now();
}

int vnode_read(struct vnode *v, u64 pos, void *buf, size_t n)
{
    if (vnode_type(v) != S_IFREG)
        return -EACCES;
    if (!v->file_ops || !v->file_ops->read)
        return -EINVAL;
    struct file file = {
        .refs = 1, .flags = O_RDONLY, .ops = v->file_ops, .vnode = v
    };
    struct iovec_k part;
    struct io io;
    io_init(&io, &part, (u32)buf, n, true);
    return v->file_ops->read(&file, &io, &pos);
}

struct timespec_k vfs_now(void)
{
    u64 ns = (u64)wallclock_now_ns();
    u64 sec = ns / NSEC_PER_SEC;
    return (struct timespec_k){ .sec = (s64)sec,
                                .nsec = (u32)(ns - sec * NSEC_PER_SEC) };
}

bool vnode_has_pages(const struct vnode *v)
{
    return v->ops && v->ops->get_page;
}

int vnode_get_page(struct vnode *v, u32 index, bool write, struct frame **out)
{
    return v->ops->get_page(v, index, write, out);
}
