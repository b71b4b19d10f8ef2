// Path arguments of the calls that end in "at": a directory's descriptor and a
// path relative to it.
#pragma once

#include "kernel/fs/file.h"
#include "kernel/fs/path.h"

#define AT_FDCWD ((u32)-100)
#define AT_SYMLINK_NOFOLLOW 0x100u
#define AT_REMOVEDIR 0x200u
#define AT_EACCESS 0x200u
#define AT_SYMLINK_FOLLOW 0x400u
#define AT_NO_AUTOMOUNT 0x800u
#define AT_EMPTY_PATH 0x1000u

struct at_path {
    struct path_arg path;
    struct vnode *at; // NULL: the cwd
    struct fd_ref dir;
};

// Copies the path and borrows the descriptor. -EFAULT, -EBADF, -ENOTDIR,
// -ENAMETOOLONG, -ENOMEM; after 0 it must be released with at_path_put.
int at_path_get(struct at_path *w, u32 dirfd, u32 path);
void at_path_put(struct at_path *w);

// The vnode named by (dirfd, path, AT_ flags), referenced. With AT_EMPTY_PATH
// and "", the descriptor's own (AT_FDCWD: the cwd); -EBADF when that has no
// vnode (pipes).
int at_path_lookup(u32 dirfd, u32 path, u32 flags, struct vnode **out);
// The vnode behind a descriptor, referenced.
int fd_vnode(u32 fd, struct vnode **out);
