// Path walking: names to vnodes, across symlinks and mounts, and back.
//
// Everything here runs under namespace_lock, which keeps the tree's shape
// constant. References are needed for vnodes that a file system creates during
// a lookup.
#include "kernel/fs/path.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/dirent.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "lib/string.h"

static struct vnode *referenced(struct vnode *v)
{
    vnode_ref(v);
    return v;
}

// The vnode visible at `v`: the root of the topmost mount on it. Consumes and
// returns a reference.
static struct vnode *cross_mounts(struct vnode *v)
{
    while (v->mounted_here) {
        struct vnode *root = referenced(v->mounted_here->root);
        vnode_unref(v);
        v = root;
    }
    return v;
}

int vnode_parent(struct vnode *v, struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    struct vnode *root = current_task()->root;
    while (v != root && vnode_is_mount_root(v) && v->mount->covered)
        v = v->mount->covered;
    if (v == root || vnode_is_mount_root(v)) {
        *out = referenced(v);
        return 0;
    }
    return v->ops->lookup(v, "..", 2, out);
}

static int find(struct walk *w, struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    assert(w->len);
    if (!vnode_is_dir(w->dir) || !w->dir->ops->lookup)
        return -ENOTDIR;
    if (unlikely(!is_root()) && vnode_may(w->dir, MAY_X))
        return -EACCES;
    if (w->len > NAME_MAX_LEN)
        return -ENAMETOOLONG;
    w->last = LAST_NAME;
    if (w->name[0] == '.' && w->len == 1) {
        w->last = LAST_DOT;
        *out = referenced(w->dir);
        return 0;
    }
    if (w->name[0] == '.' && w->name[1] == '.' && w->len == 2) {
        w->last = LAST_DOTDOT;
        return vnode_parent(w->dir, out);
    }
    int err = w->dir->ops->lookup(w->dir, w->name, w->len, out);
    if (err)
        return err;
    if (!(*out)->mount)
        (*out)->mount = w->dir->mount;
    *out = cross_mounts(*out);
    return 0;
}

// Replaces the path being walked by the symlink's target and the rest of the
// path.
static int expand(struct walk *w, struct vnode *symlink, const char **rest)
{
    mutex_assert_held(&namespace_lock);
    if (!symlink->ops->readlink)
        return -EINVAL;
    // A symlink without a known length gets the maximum.
    size_t left = strlen(*rest);
    size_t room = symlink->size ? (size_t)symlink->size : PATH_MAX_LEN;
    if (room + left > PATH_MAX_LEN && symlink->size)
        return -ENAMETOOLONG;
    char *text = kmalloc(room + left + 1);
    if (!text)
        return -ENOMEM;
    int err = 0;
    int len = symlink->ops->readlink(symlink, text, room);
    if (len <= 0)
        err = len < 0 ? len : -ENOENT;
    else if ((size_t)len + left > PATH_MAX_LEN)
        err = -ENAMETOOLONG;
    if (err) {
        kfree(text);
        return err;
    }
    memcpy(text + len, *rest, left + 1);
    kfree(w->expanded);
    w->expanded = text;
    *rest = text;
    return 0;
}

static void start_at(struct walk *w, struct vnode *v)
{
    vnode_ref(v);
    if (w->dir)
        vnode_unref(w->dir);
    w->dir = v;
}

// Takes the next name from *path, which is not empty, and the slashes around
// it. False: there are only slashes.
static bool next_name(struct walk *w, const char **path)
{
    const char *p = *path;
    while (*p == '/')
        p++;
    w->name = p;
    while (*p && *p != '/')
        p++;
    w->len = (size_t)(p - w->name);
    w->slash = *p == '/';
    *path = p;
    return w->len > 0;
}

static bool only_slashes(const char *p)
{
    while (*p == '/')
        p++;
    return !*p;
}

static bool must_follow(const struct walk *w, const struct vnode *v, bool end,
                        u32 flags)
{
    if (vnode_type(v) != S_IFLNK)
        return false;
    if (!end || (flags & WALK_FOLLOW))
        return true;
    return w->slash && !(flags & WALK_CHANGE);
}

static int walk_names(struct walk *w, const char *path, u32 flags)
{
    mutex_assert_held(&namespace_lock);
    u32 symlinks = 0;
    for (;;) {
        struct vnode *v;
        if (!next_name(w, &path)) {
            w->last = LAST_ROOT;
            w->vnode = referenced(w->dir);
            return 0;
        }
        bool end = only_slashes(path);
        int err = find(w, &v);
        if (err == -ENOENT && end && w->last == LAST_NAME)
            return 0;
        if (err)
            return err;
        bool follow = must_follow(w, v, end, flags);
        if (follow && v->ops->follow) {
            struct vnode *target;
            err = v->ops->follow(v, &target);
            vnode_unref(v);
            if (err)
                return err;
            v = target;
        } else if (follow) {
            err = end ? vnode_may_follow(w->dir, v) : 0;
            if (!err)
                err = ++symlinks > SYMLINKS_MAX ? -ELOOP : expand(w, v, &path);
            vnode_unref(v);
            if (err)
                return err;
            if (path[0] == '/')
                start_at(w, current_task()->root);
            continue;
        }
        if (end) {
            w->vnode = v;
            bool dir = !w->slash || (flags & WALK_CHANGE) || vnode_is_dir(v);
            return dir ? 0 : -ENOTDIR;
        }
        vnode_unref(w->dir);
        w->dir = v;
    }
}

int walk_path(struct walk *w, struct vnode *at, const char *path, u32 flags)
{
    assert(mutex_held(&namespace_lock));
    struct task *task = current_task();
    if (!path[0])
        return -ENOENT;
    *w = (struct walk){ .dir = NULL };
    start_at(w, path[0] == '/' ? task->root : at ? at : task->cwd);
    int err = walk_names(w, path, flags);
    if (err)
        walk_done(w);
    return err;
}

void walk_done(struct walk *w)
{
    mutex_assert_held(&namespace_lock);
    if (w->vnode)
        vnode_unref(w->vnode);
    vnode_unref(w->dir);
    if (w->expanded)
        kfree(w->expanded);
}

int walk_create(struct walk *w, u32 mode, u32 rdev, struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    int err = vnode_may_change(w->dir);
    if (err)
        return err;
    if (!w->dir->ops->create)
        return -EPERM;
    err = w->dir->ops->create(w->dir, w->name, w->len, mode, rdev, out);
    if (!err)
        vnode_set_creator(w->dir, *out);
    return err;
}

int vfs_lookup(struct vnode *at, const char *path, u32 flags,
               struct vnode **out)
{
    struct walk w;
    mutex_lock(&namespace_lock);
    int err = walk_path(&w, at, path, flags);
    if (!err) {
        *out = w.vnode; // with its reference
        w.vnode = NULL;
        walk_done(&w);
        err = *out ? 0 : -ENOENT;
    }
    mutex_unlock(&namespace_lock);
    return err;
}

// --- from a vnode to its path -----------------------------------------------

// The directory (referenced) and the name of `v`, which is not a mount's root.
static int locate(struct vnode *v, struct vnode **dir, char *name, size_t *len)
{
    mutex_assert_held(&namespace_lock);
    const char *known;
    if (!v->ops->locate)
        return -ENOENT;
    int err = v->ops->locate(v, dir, &known, len);
    if (err)
        return err;
    vnode_ref(*dir);
    memcpy(name, known, *len);
    return 0;
}

// Writes the path so that it ends at buf + size; returns its start or -errno.
static int path_backwards(struct vnode *v, char *buf, size_t size)
{
    mutex_assert_held(&namespace_lock);
    struct vnode *root = current_task()->root;
    size_t at = size - 1;
    int err = 0;
    buf[at] = '\0';
    vnode_ref(v);
    while (v != root && !err) {
        char name[NAME_MAX_LEN];
        size_t len;
        struct vnode *dir;
        if (vnode_is_mount_root(v)) {
            if (!v->mount->covered) {
                err = v->mount->detached ? -ENOENT : 0;
                break;
            }
            dir = referenced(v->mount->covered);
        } else {
            err = locate(v, &dir, name, &len);
            if (err)
                break;
            if (at < len + 1)
                err = -ERANGE;
            else {
                at -= len + 1;
                buf[at] = '/';
                memcpy(buf + at + 1, name, len);
            }
        }
        vnode_unref(v);
        v = dir;
    }
    vnode_unref(v);
    return err ? err : (int)at;
}

int vfs_path(struct vnode *v, char *buf, size_t size)
{
    if (size < 2)
        return -ERANGE;
    // The walker calls readlink() in /proc with the lock held.
    bool held = mutex_held(&namespace_lock);
    if (!held)
        mutex_lock(&namespace_lock);
    int at = path_backwards(v, buf, size);
    if (!held)
        mutex_unlock(&namespace_lock);
    if (at < 0)
        return at;
    if ((size_t)at == size - 1)
        buf[--at] = '/';
    size_t len = size - 1 - (size_t)at;
    memmove(buf, buf + at, len + 1);
    return (int)len;
}

// --- path arguments ---------------------------------------------------------

int path_get(struct path_arg *p, u32 user)
{
    p->large = NULL;
    p->text = p->small;
    int len = copy_string_from_user(p->small, user, sizeof(p->small));
    if (likely(len != -ENAMETOOLONG))
        return len < 0 ? len : 0;
    p->large = kmalloc(PATH_MAX_LEN + 1);
    if (!p->large)
        return -ENOMEM;
    p->text = p->large;
    len = copy_string_from_user(p->large, user, PATH_MAX_LEN + 1);
    if (len >= 0)
        return 0;
    kfree(p->large);
    return len;
}

void path_put(struct path_arg *p)
{
    if (p->large)
        kfree(p->large);
}
