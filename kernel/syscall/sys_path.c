// Calls that create, remove, rename and read names.
#include "kernel/mm/heap.h"
#include "kernel/syscall/at_path.h"
#include "kernel/syscall/syscall.h"

// --- creating ---------------------------------------------------------------

s32 sys_mkdirat(u32 dir, u32 path, u32 mode)
{
    struct at_path w;
    int err = at_path_get(&w, dir, path);
    if (err)
        return err;
    err =
        vfs_mkdir(w.at, w.path.text, mode & ~READ_ONCE(current_task()->umask));
    at_path_put(&w);
    return err;
}

// In the user's device numbers the minor's upper bits are at the top.
static u32 device_from_user(u32 dev)
{
    return (dev & 0xffff) | (dev >> 12 & 0xff00);
}

s32 sys_mknodat(u32 dir, u32 path, u32 mode, u32 device)
{
    struct at_path w;
    int err = at_path_get(&w, dir, path);
    if (err)
        return err;
    err = vfs_mknod(w.at, w.path.text, mode & ~READ_ONCE(current_task()->umask),
                    device_from_user(device));
    at_path_put(&w);
    return err;
}

s32 sys_symlinkat(u32 target, u32 dir, u32 path)
{
    struct path_arg text;
    struct at_path w;
    int err = path_get(&text, target);
    if (err)
        return err;
    err = at_path_get(&w, dir, path);
    if (!err) {
        err = vfs_symlink(w.at, w.path.text, text.text);
        at_path_put(&w);
    }
    path_put(&text);
    return err;
}

s32 sys_linkat(u32 from_dir, u32 from, u32 to_dir, u32 to, u32 flags)
{
    struct vnode *v;
    struct at_path w;
    if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    u32 lookup = flags & AT_EMPTY_PATH;
    if (!(flags & AT_SYMLINK_FOLLOW))
        lookup |= AT_SYMLINK_NOFOLLOW;
    int err = at_path_lookup(from_dir, from, lookup, &v);
    if (err)
        return err;
    err = at_path_get(&w, to_dir, to);
    if (!err) {
        err = vfs_link(v, w.at, w.path.text);
        at_path_put(&w);
    }
    vnode_unref(v);
    return err;
}

// --- removing and renaming --------------------------------------------------

static s32 remove_name(u32 dirfd, u32 path,
                       int (*fn)(struct vnode *at, const char *path))
{
    struct at_path w;
    int err = at_path_get(&w, dirfd, path);
    if (err)
        return err;
    err = fn(w.at, w.path.text);
    at_path_put(&w);
    return err;
}

s32 sys_unlinkat(u32 dir, u32 path, u32 flags)
{
    if (flags & ~AT_REMOVEDIR)
        return -EINVAL;
    return remove_name(dir, path,
                       flags & AT_REMOVEDIR ? vfs_rmdir : vfs_unlink);
}

#define RENAME_NOREPLACE 1u

s32 sys_renameat2(u32 from_dir, u32 from, u32 to_dir, u32 to, u32 flags)
{
    struct at_path old, new;
    if (flags & ~RENAME_NOREPLACE)
        return -EINVAL;
    int err = at_path_get(&old, from_dir, from);
    if (err)
        return err;
    err = at_path_get(&new, to_dir, to);
    if (!err) {
        err = vfs_rename(old.at, old.path.text, new.at, new.path.text,
                         !(flags & RENAME_NOREPLACE));
        at_path_put(&new);
    }
    at_path_put(&old);
    return err;
}

// --- symlinks ---------------------------------------------------------------

s32 sys_readlinkat(u32 dir, u32 path, u32 buffer, u32 size)
{
    struct vnode *v;
    if ((s32)size <= 0)
        return -EINVAL;
    int err =
        at_path_lookup(dir, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, &v);
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
    if (len > 0 && copy_to_user(buffer, text, (size_t)len))
        len = -EFAULT;
    kfree(text);
    return len;
}
