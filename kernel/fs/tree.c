// Changes to the tree's shape: the rules common to all file systems.
//
// Each call holds namespace_lock from the walk to the change, so its checks
// still hold when the file system acts.
#include "kernel/base/errno.h"
#include "kernel/fs/mount.h"
#include "kernel/fs/path.h"
#include "kernel/task/task.h"
#include "lib/string.h"

// Walks to a name that must not exist yet, and creates a vnode there.
static int create_at(struct vnode *at, const char *path, u32 mode, u32 rdev,
                     struct vnode **out)
{
    struct walk w;
    int err = walk_path(&w, at, path, WALK_CHANGE);
    if (err)
        return err;
    if (w.vnode)
        err = -EEXIST;
    else if (w.slash && (mode & S_IFMT) != S_IFDIR)
        err = -ENOENT;
    else
        err = walk_create(&w, mode, rdev, out);
    walk_done(&w);
    return err;
}

static int create(struct vnode *at, const char *path, u32 mode, u32 rdev)
{
    struct vnode *v;
    mutex_lock(&namespace_lock);
    int err = create_at(at, path, mode, rdev, &v);
    mutex_unlock(&namespace_lock);
    if (!err)
        vnode_unref(v);
    return err;
}

int vfs_mkdir(struct vnode *at, const char *path, u32 mode)
{
    return create(at, path, S_IFDIR | (mode & 01777), 0);
}

int vfs_mknod(struct vnode *at, const char *path, u32 mode, u32 rdev)
{
    switch (mode & S_IFMT) {
    case 0:
        mode |= S_IFREG;
        break;
    case S_IFREG:
    case S_IFIFO:
        break;
    case S_IFCHR:
        if (!is_root())
            return -EPERM;
        break;
    case S_IFDIR:
    case S_IFBLK:
    case S_IFSOCK:
        return -EPERM;
    default:
        return -EINVAL;
    }
    return create(at, path, mode & (S_IFMT | 07777), rdev);
}

static int make_symlink(struct walk *w, const char *target, struct vnode **out)
{
    int err = vnode_may_change(w->dir);
    if (err)
        return err;
    if (!w->dir->ops->symlink)
        return -EPERM;
    err = w->dir->ops->symlink(w->dir, w->name, w->len, target, out);
    if (!err)
        vnode_set_creator(w->dir, *out);
    return err;
}

int vfs_symlink(struct vnode *at, const char *path, const char *target)
{
    struct walk w;
    struct vnode *v;
    if (!target[0])
        return -ENOENT;
    mutex_lock(&namespace_lock);
    int err = walk_path(&w, at, path, WALK_CHANGE);
    if (!err) {
        err = w.vnode ? -EEXIST : w.slash ? -ENOENT : 0;
        if (!err)
            err = make_symlink(&w, target, &v);
        walk_done(&w);
    }
    mutex_unlock(&namespace_lock);
    if (!err)
        vnode_unref(v);
    return err;
}

static int add_link(struct walk *w, struct vnode *v)
{
    int err = vnode_may_link(v);
    if (!err)
        err = vnode_may_change(w->dir);
    if (err)
        return err;
    if (vnode_is_dir(v) || !w->dir->ops->link)
        return -EPERM;
    if (v->nlink == 0) // unlinked since the lookup
        return -ENOENT;
    return w->dir->ops->link(w->dir, w->name, w->len, v);
}

int vfs_link(struct vnode *v, struct vnode *at, const char *path)
{
    struct walk w;
    mutex_lock(&namespace_lock);
    int err = walk_path(&w, at, path, WALK_CHANGE);
    if (!err) {
        if (w.vnode)
            err = -EEXIST;
        else if (w.slash)
            err = -ENOENT;
        else if (w.dir->mount != v->mount)
            err = -EXDEV;
        else
            err = add_link(&w, v);
        walk_done(&w);
    }
    mutex_unlock(&namespace_lock);
    return err;
}

static int check_unlink(const struct walk *w)
{
    if (w->last != LAST_NAME)
        return -EISDIR;
    if (!w->vnode)
        return -ENOENT;
    int err = vnode_may_remove(w->dir, w->vnode);
    if (err)
        return err;
    if (vnode_is_dir(w->vnode))
        return -EISDIR;
    return w->slash ? -ENOTDIR : 0;
}

static int check_rmdir(const struct walk *w)
{
    switch (w->last) {
    case LAST_ROOT:
        return -EBUSY;
    case LAST_DOT:
        return -EINVAL;
    case LAST_DOTDOT:
        return -ENOTEMPTY;
    case LAST_NAME:
        break;
    }
    if (!w->vnode)
        return -ENOENT;
    int err = vnode_may_remove(w->dir, w->vnode);
    if (err)
        return err;
    if (!vnode_is_dir(w->vnode))
        return -ENOTDIR;
    return vnode_is_mount_root(w->vnode) ? -EBUSY : 0;
}

static int remove_at(struct vnode *at, const char *path,
                     int (*check)(const struct walk *))
{
    struct walk w;
    mutex_lock(&namespace_lock);
    int err = walk_path(&w, at, path, WALK_CHANGE);
    if (!err) {
        err = check(&w);
        if (!err && !w.dir->ops->unlink)
            err = -EPERM;
        if (!err)
            err = w.dir->ops->unlink(w.dir, w.name, w.len, w.vnode);
        walk_done(&w);
    }
    mutex_unlock(&namespace_lock);
    return err;
}

int vfs_unlink(struct vnode *at, const char *path)
{
    return remove_at(at, path, check_unlink);
}

int vfs_rmdir(struct vnode *at, const char *path)
{
    return remove_at(at, path, check_rmdir);
}

// Whether `dir` is `v` or is below it, within one file system.
static int is_inside(struct vnode *dir, struct vnode *v, bool *inside)
{
    mutex_assert_held(&namespace_lock);
    vnode_ref(dir);
    while (dir != v && !vnode_is_mount_root(dir)) {
        struct vnode *parent;
        int err = dir->ops->lookup(dir, "..", 2, &parent);
        vnode_unref(dir);
        if (err)
            return err;
        dir = parent;
    }
    *inside = dir == v;
    vnode_unref(dir);
    return 0;
}

static int check_replaced(const struct walk *from, const struct walk *to)
{
    if (!to->vnode)
        return 0;
    if (vnode_is_mount_root(to->vnode))
        return -EBUSY;
    if (vnode_is_dir(from->vnode))
        return vnode_is_dir(to->vnode) ? 0 : -ENOTDIR;
    return vnode_is_dir(to->vnode) ? -EISDIR : 0;
}

// Moving a directory needs write permission for it, because ".." changes.
static int may_rename(const struct walk *from, const struct walk *to)
{
    int err = vnode_may_remove(from->dir, from->vnode);
    if (!err)
        err = to->vnode ? vnode_may_remove(to->dir, to->vnode)
                        : vnode_may_change(to->dir);
    if (!err && vnode_is_dir(from->vnode) && from->dir != to->dir)
        err = vnode_may(from->vnode, MAY_W);
    return err;
}

static int rename_walked(struct walk *from, struct walk *to, bool replace)
{
    mutex_assert_held(&namespace_lock);
    bool inside = false;
    if (from->last != LAST_NAME || to->last != LAST_NAME)
        return -EBUSY;
    if (!from->vnode)
        return -ENOENT;
    if (from->dir->mount != to->dir->mount)
        return -EXDEV;
    if (vnode_is_mount_root(from->vnode))
        return -EBUSY;
    if (!vnode_is_dir(from->vnode) && (from->slash || to->slash))
        return -ENOTDIR;
    if (to->vnode && !replace)
        return -EEXIST;
    if (from->vnode == to->vnode)
        return 0;
    int err = may_rename(from, to);
    if (!err)
        err = check_replaced(from, to);
    if (!err && vnode_is_dir(from->vnode))
        err = is_inside(to->dir, from->vnode, &inside);
    if (err)
        return err;
    if (inside)
        return -EINVAL;
    if (!from->dir->ops->rename)
        return -EPERM;
    return from->dir->ops->rename(from->dir, from->name, from->len, to->dir,
                                  to->name, to->len, from->vnode, to->vnode);
}

int vfs_rename(struct vnode *from_at, const char *from, struct vnode *to_at,
               const char *to, bool replace)
{
    struct walk w, new;
    mutex_lock(&namespace_lock);
    int err = walk_path(&w, from_at, from, WALK_CHANGE);
    if (!err) {
        err = walk_path(&new, to_at, to, WALK_CHANGE);
        if (!err) {
            err = rename_walked(&w, &new, replace);
            walk_done(&new);
        }
        walk_done(&w);
    }
    mutex_unlock(&namespace_lock);
    return err;
}
