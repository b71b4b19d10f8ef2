// File systems and where they are mounted; what a file system is made with.
//
// `namespace_lock` guards the list of mounts. What a file system promises:
//  - lookup() is asked for ".." too, but not in the file system's root, and
//    never for ".". It may leave out->mount NULL: the walker fills it in.
//  - readdir() gives neither "." nor "..": the VFS does. Positions are the
//    file system's own, start at 0 and only grow; dirent_emit's `next_pos` is
//    where to go on after that entry.
//  - an operation that is NULL is refused (-ENOTDIR, -EPERM, -EINVAL), but for
//    open (v->file_ops is used), poll (always ready) and release (nothing).
#pragma once

#include "kernel/fs/vfs.h"

// Fills a vnode: refs 1, nlink 1, times now, the rest 0. `m` may be NULL.
void vnode_init(struct vnode *v, struct mount *m, u32 mode,
                const struct vnode_ops *ops, const struct file_ops *file_ops);
// A number for a new vnode, unique while the machine runs.
u64 vnode_new_ino(void);

typedef int (*statfs_fn)(struct mount *m, u64 *total_pages, u64 *free_pages);

// A mount that is not in the tree yet, with its own device number. Consumes the
// reference to `root` and sets root->mount. `path` may be "": vfs_mount_at
// fills it in. `statfs` may be NULL: no pages. NULL when out of memory (the
// reference is then still the caller's).
struct mount *mount_create(const char *type, const char *path,
                           struct vnode *root, statfs_fn statfs);

// Mounts over the directory `path`; the first mount of all becomes the root.
// 0, -ENOENT, -ENOTDIR, -EBUSY. Sleeps.
int vfs_mount_at(const char *path, struct mount *m);
// Takes the mount at `path` out of the tree.
// -EINVAL: nothing is mounted there. -EBUSY: files or directories of it are in
// use, another mount is inside, or it is /.
int vfs_unmount(const char *path);
// The same for a mount that is in use: who uses it goes on to. It ends with the
// first mount or unmount after its last use.
int vfs_detach(const char *path);
// Makes a file system by its type's name: -ENODEV when unknown, -ENOMEM.
int mount_by_type(const char *type, struct mount **out);
// Gives up a mount that could not be mounted.
void mount_discard(struct mount *m);

// Calls fn for every mount, outermost first, until it returns nonzero, which is
// returned. Under namespace_lock: fn must not walk paths.
int mount_for_each(int (*fn)(const struct mount *m, void *arg), void *arg);

// The file systems. Each makes a new mount_create()d one.
int tmpfs_mount(struct mount **out);
int devfs_mount(struct mount **out);         // kernel/fs/devfs.c
UPCALL int procfs_mount(struct mount **out); // kernel/procfs/procfs.c

// Whether others than the mount have references to its vnodes. Of those to the
// root `ours` are the caller's. Under namespace_lock.
bool tmpfs_busy(const struct mount *m, u32 ours);
UPCALL bool procfs_busy(const struct mount *m, u32 ours);
// Removes every name in a tmpfs, which takes no more. Under namespace_lock.
void tmpfs_clear(struct vnode *root);
