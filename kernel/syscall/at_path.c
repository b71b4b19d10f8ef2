// Resolves path arguments.
#include "kernel/syscall/at_path.h"

#include "kernel/base/errno.h"

int at_path_get(struct at_path *w, u32 dirfd, u32 path)
{
    int err = path_get(&w->path, path);
    if (err)
        return err;
    w->at = NULL;
    if (dirfd == AT_FDCWD || w->path.text[0] == '/' || !w->path.text[0])
        return 0; // "" fails later, or (AT_EMPTY_PATH) is the fd
    err = fd_borrow(dirfd, &w->dir);
    if (err) {
        path_put(&w->path);
        return err;
    }
    w->at = w->dir.file->vnode;
    if (w->at)
        return 0;
    fd_return(&w->dir);
    path_put(&w->path);
    return -ENOTDIR;
}

void at_path_put(struct at_path *w)
{
    if (w->at)
        fd_return(&w->dir);
    path_put(&w->path);
}

static int current_directory(struct vnode **out)
{
    mutex_lock(&namespace_lock);
    *out = current_task()->cwd;
    vnode_ref(*out);
    mutex_unlock(&namespace_lock);
    return 0;
}

int fd_vnode(u32 fd, struct vnode **out)
{
    struct fd_ref r;
    int err = fd_borrow(fd, &r);
    if (err)
        return err;
    *out = r.file->vnode;
    if (*out)
        vnode_ref(*out);
    else
        err = -EBADF;
    fd_return(&r);
    return err;
}

int at_path_lookup(u32 dirfd, u32 path, u32 flags, struct vnode **out)
{
    struct at_path w;
    int err = at_path_get(&w, dirfd, path);
    if (err)
        return err;
    if (!w.path.text[0] && (flags & AT_EMPTY_PATH))
        err = dirfd == AT_FDCWD ? current_directory(out) : fd_vnode(dirfd, out);
    else
        err = vfs_lookup(w.at, w.path.text,
                         flags & AT_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW, out);
    at_path_put(&w);
    return err;
}
