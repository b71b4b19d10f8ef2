// Calls that make, remove, move and read names.
#include "kernel/mm/heap.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/where.h"

// --- making -----------------------------------------------------------------

static s32 make_directory(u32 dirfd, u32 path, u32 mode)
{
    struct where w;
    int err = where_get(&w, dirfd, path);
    if (err)
        return err;
    err =
        vfs_mkdir(w.at, w.path.text, mode & ~READ_ONCE(current_task()->umask));
    where_put(&w);
    return err;
}

SYSCALL_HANDLER(mkdir)
{
    return make_directory(AT_FDCWD, a, b);
}

SYSCALL_HANDLER(mkdirat)
{
    return make_directory(a, b, c);
}

// The user's device numbers have their minor's upper bits on top.
static u32 device_from_user(u32 dev)
{
    return (dev & 0xffff) | (dev >> 12 & 0xff00);
}

static s32 make_node(u32 dirfd, u32 path, u32 mode, u32 dev)
{
    struct where w;
    int err = where_get(&w, dirfd, path);
    if (err)
        return err;
    err = vfs_mknod(w.at, w.path.text, mode & ~READ_ONCE(current_task()->umask),
                    device_from_user(dev));
    where_put(&w);
    return err;
}

SYSCALL_HANDLER(mknod)
{
    return make_node(AT_FDCWD, a, b, c);
}

SYSCALL_HANDLER(mknodat)
{
    return make_node(a, b, c, d);
}

static s32 make_symlink(u32 target, u32 dirfd, u32 path)
{
    struct path_arg text;
    struct where w;
    int err = path_get(&text, target);
    if (err)
        return err;
    err = where_get(&w, dirfd, path);
    if (!err) {
        err = vfs_symlink(w.at, w.path.text, text.text);
        where_put(&w);
    }
    path_put(&text);
    return err;
}

SYSCALL_HANDLER(symlink)
{
    return make_symlink(a, AT_FDCWD, b);
}

SYSCALL_HANDLER(symlinkat)
{
    return make_symlink(a, b, c);
}

static s32 make_link(u32 from_fd, u32 from, u32 to_fd, u32 to, u32 flags)
{
    struct vnode *v;
    struct where w;
    if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    u32 lookup = flags & AT_EMPTY_PATH;
    if (!(flags & AT_SYMLINK_FOLLOW))
        lookup |= AT_SYMLINK_NOFOLLOW;
    int err = where_lookup(from_fd, from, lookup, &v);
    if (err)
        return err;
    err = where_get(&w, to_fd, to);
    if (!err) {
        err = vfs_link(v, w.at, w.path.text);
        where_put(&w);
    }
    vnode_unref(v);
    return err;
}

SYSCALL_HANDLER(link)
{
    return make_link(AT_FDCWD, a, AT_FDCWD, b, 0);
}

SYSCALL_HANDLER(linkat)
{
    return make_link(a, b, c, d, e);
}

// --- removing and moving ----------------------------------------------------

static s32 remove_name(u32 dirfd, u32 path,
                       int (*fn)(struct vnode *at, const char *path))
{
    struct where w;
    int err = where_get(&w, dirfd, path);
    if (err)
        return err;
    err = fn(w.at, w.path.text);
    where_put(&w);
    return err;
}

SYSCALL_HANDLER(unlink)
{
    return remove_name(AT_FDCWD, a, vfs_unlink);
}

SYSCALL_HANDLER(rmdir)
{
    return remove_name(AT_FDCWD, a, vfs_rmdir);
}

SYSCALL_HANDLER(unlinkat)
{
    if (c & ~AT_REMOVEDIR)
        return -EINVAL;
    return remove_name(a, b, c & AT_REMOVEDIR ? vfs_rmdir : vfs_unlink);
}

#define RENAME_NOREPLACE 1u

static s32 rename_at(u32 from_fd, u32 from, u32 to_fd, u32 to, u32 flags)
{
    struct where old, new;
    if (flags & ~RENAME_NOREPLACE)
        return -EINVAL;
    int err = where_get(&old, from_fd, from);
    if (err)
        return err;
    err = where_get(&new, to_fd, to);
    if (!err) {
        err = vfs_rename(old.at, old.path.text, new.at, new.path.text,
                         !(flags & RENAME_NOREPLACE));
        where_put(&new);
    }
    where_put(&old);
    return err;
}

SYSCALL_HANDLER(rename)
{
    return rename_at(AT_FDCWD, a, AT_FDCWD, b, 0);
}

SYSCALL_HANDLER(renameat)
{
    return rename_at(a, b, c, d, 0);
}

SYSCALL_HANDLER(renameat2)
{
    return rename_at(a, b, c, d, e);
}

// --- symlinks ---------------------------------------------------------------

static s32 read_link(u32 dirfd, u32 path, u32 addr, u32 size)
{
    struct vnode *v;
    if ((s32)size <= 0)
        return -EINVAL;
    int err =
        where_lookup(dirfd, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, &v);
    if (err)
        return err;
    size = MIN(size, PATH_MAX_LEN + 1);
    char *text = kmalloc(size);
    int len = text ? -EINVAL : -ENOMEM;
    if (text && vnode_type(v) == S_IFLNK && v->ops->readlink) {
        mutex_lock(&namespace_lock);
        len = v->ops->readlink(v, text, size);
        mutex_unlock(&namespace_lock);
    }
    vnode_unref(v);
    if (len > 0)
        len = MIN(len, (int)size);
    if (len > 0 && copy_to_user(addr, text, (size_t)len))
        len = -EFAULT;
    kfree(text);
    return len;
}

SYSCALL_HANDLER(readlink)
{
    return read_link(AT_FDCWD, a, b, c);
}

SYSCALL_HANDLER(readlinkat)
{
    return read_link(a, b, c, d);
}
