// File systems and their mounts; the interface for implementing a file system.
//
// `namespace_lock` guards the list of mounts. A file system promises:
//  - lookup() is called for ".." too, but not in the file system's root, and
//    never for ".". It may leave out->mount NULL: the walker fills it in.
//  - readdir() emits neither "." nor "..": the VFS does. Positions are the
//    file system's own, start at 0 and only grow; dirent_emit's `next_pos` is
//    the position after that entry.
//  - an operation that is NULL fails (-ENOTDIR, -EPERM, -EINVAL), except for
//    open (v->file_ops is used), poll (always ready) and release (no-op).
#pragma once

#include "kernel/fs/vfs.h"

// Initialises a vnode: refs 1, nlink 1, times now, the rest 0. `m` may be NULL.
void vnode_init(struct vnode *v, struct mount *m, u32 mode,
                const struct vnode_ops *ops, const struct file_ops *file_ops);
// An inode number for a new vnode, unique while the machine runs.
u64 vnode_new_ino(void);

// Drops a reference. True: it was the last one, and the caller, a file system,
// ends the vnode as its `release` does.
bool vnode_unref_last(struct vnode *v);

typedef int (*statfs_fn)(struct mount *m, u64 *total_pages, u64 *free_pages);

// Creates a mount that is not in the tree yet, with its own device number.
// Consumes the reference to `root` and sets root->mount. `path` may be "":
// vfs_mount_at fills it in. `statfs` may be NULL: no pages. NULL when out of
// memory (the caller then still has the reference).
struct mount *mount_create(const char *type, const char *path,
                           struct vnode *root, statfs_fn statfs);

// Mounts over the directory `path`; the very first mount becomes the root. 0,
// -ENOENT, -ENOTDIR, -EBUSY. Sleeps.
int vfs_mount_at(const char *path, struct mount *m);
// Takes the mount at `path` out of the tree.
// -EINVAL: nothing is mounted there. -EBUSY: files or directories of it are in
// use, another mount is inside, or it is /.
int vfs_unmount(const char *path);
// The same for a mount that may be in use: its users keep it. It ends with the
// first mount or unmount after its last use.
int vfs_detach(const char *path);
// Creates a file system of the named type: -ENODEV when unknown, -ENOMEM.
// `disk` names what it is on, if it is on a disk ("sata0p1"; NULL: any stick);
// others ignore it, and cannot be read-only (-EINVAL).
int mount_by_type(const char *type, const char *disk, bool read_only,
                  struct mount **out);
// Discards a mount that could not be mounted.
void mount_discard(struct mount *m);

// Calls fn for every mount, outermost first, until it returns nonzero, which is
// returned. Under namespace_lock: fn must not walk paths.
int mount_for_each(int (*fn)(const struct mount *m, void *arg), void *arg);

// The file systems. Each function creates a mount with mount_create().
int tmpfs_mount(struct mount **out);
int devfs_mount(struct mount **out);          // kernel/fs/devfs.c
UPCALL int procfs_mount(struct mount **out);  // kernel/procfs/procfs.c
UPCALL int sensors_mount(struct mount **out); // kernel/sensor/sensor_fs.c

// kernel/fs/fat_fs.c: the partition of this name, or (NULL) of a stick that is
// not mounted. -ENXIO: there is none; -EBUSY: the disk is in use; -EINVAL: it
// has no FAT file system, which is logged.
// A disk that cannot be written is mounted read-only.
int fat_fs_mount(const char *name, bool read_only, struct mount **out);

// Whether there are references to the mount's vnodes besides the mount's own.
// Of those to the root, `ours` are the caller's. Under namespace_lock.
bool tmpfs_busy(const struct mount *m, u32 ours);
UPCALL bool procfs_busy(const struct mount *m, u32 ours);
bool fat_fs_busy(const struct mount *m, u32 ours);
// Whether the disk of this mount has gone.
bool fat_fs_gone(const struct mount *m);
// Removes every name in a tmpfs, to which none can be added any more. Under
// namespace_lock.
void tmpfs_clear(struct vnode *root);
