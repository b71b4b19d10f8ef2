// Path walking, for the calls that read or change the name at a path's end.
#pragma once

#include "kernel/fs/vfs.h"

#define PATH_MAX_LEN 4095u // without the NUL
#define NAME_MAX_LEN 255u
#define SYMLINKS_MAX 40u

// In addition to WALK_FOLLOW: the last name is about to be created, removed or
// moved. So a symlink there is never followed, and the caller must refuse a
// slash after a name that is not a directory.
#define WALK_CHANGE 2u

enum last_kind { LAST_NAME, LAST_ROOT, LAST_DOT, LAST_DOTDOT };

struct walk {
    struct vnode *dir;   // of the last name; referenced
    struct vnode *vnode; // what the last name refers to, referenced; or NULL
    enum last_kind last;
    bool slash;       // slashes followed the last name
    const char *name; // the last name: in the path, or in `expanded`
    size_t len;
    char *expanded; // the path with symlinks replaced, or NULL
};

// Walks to the last name; all names before it must exist. Relative paths start
// at `at` (NULL: the task's cwd). Under namespace_lock, as long as *w is used.
// 0: release it with walk_done. -ENOENT, -ENOTDIR, -ELOOP, -ENAMETOOLONG.
int walk_path(struct walk *w, struct vnode *at, const char *path, u32 flags);
void walk_done(struct walk *w);
// Creates the name that a walk found missing. *out is referenced.
int walk_create(struct walk *w, u32 mode, u32 rdev, struct vnode **out);

// The parent directory of `v`: across mounts, but not above the task's root.
// *out is referenced. Under namespace_lock.
int vnode_parent(struct vnode *v, struct vnode **out);
static inline bool vnode_is_dir(const struct vnode *v)
{
    return vnode_type(v) == S_IFDIR;
}
// Whether `v` is the root of a mount.
static inline bool vnode_is_mount_root(const struct vnode *v)
{
    return v->mount && v->mount->root == v;
}

// Further permission checks for the current task, by owner and mode: 0,
// -EACCES, -EPERM.
int vnode_may_open(const struct vnode *v, u32 flags);
// To add names to `dir`; to remove the name of `v`. Under namespace_lock.
int vnode_may_change(const struct vnode *dir);
int vnode_may_remove(const struct vnode *dir, const struct vnode *v);
// give `v` a further name: -EPERM. follow a symlink of the directory: -EACCES.
int vnode_may_link(const struct vnode *v);
int vnode_may_follow(const struct vnode *dir, const struct vnode *symlink);
// Makes the current task the owner of a new vnode of the directory. Under
// namespace_lock.
void vnode_set_creator(const struct vnode *dir, struct vnode *v);

// The kernel's copy of a path argument. Release it after success only.
struct path_arg {
    const char *text;
    char *large;
    char small[128];
};
int path_get(struct path_arg *p, u32 user); // -EFAULT, -ENAMETOOLONG, -ENOMEM
void path_put(struct path_arg *p);

// Changes to the tree, in addition to those in vfs.h.
int vfs_link(struct vnode *v, struct vnode *at, const char *path);
int vfs_unlink(struct vnode *at, const char *path);
int vfs_rmdir(struct vnode *at, const char *path);
int vfs_rename(struct vnode *from_at, const char *from, struct vnode *to_at,
               const char *to, bool replace);
