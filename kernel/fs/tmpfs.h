// tmpfs: files in memory. Shared by its parts.
//
// namespace_lock guards directories and nlink. vnode->lock guards a file's
// pages, size and times; write_lock (a mutex, taken before it) serialises
// writes and truncations of one file. The page fault path takes vnode->lock
// only.
//
// What a node takes is charged to the user who has created it, names to the
// user who has given them: kernel/task/users.h. Beyond the share is -EDQUOT.
//
// A file system whose regular files have contents of another kind mounts a
// tmpfs with its own operations, which call tmpfs's for names and directories
// (kernel/sensor/sensor_fs.c).
#pragma once

#include "kernel/fs/mount.h"
#include "kernel/fs/pagetree.h"

struct tmpfs {
    struct mount *mount;
    u32 nodes;   // live vnodes; atomic. The last one frees fs and mount
    u32 unnamed; // nodes without a name (root, removed ones); atomic
    const struct vnode_ops *ops;        // of all nodes
    const struct file_ops *regular_ops; // of regular files
};

struct payer;
struct tmpfs_entry; // a name in a directory; holds a reference to its node

struct tmpfs_directory {
    struct tmpfs_entry **table; // hashed; NULL while empty
    u32 buckets, count;
    struct list order; // by position
    u64 next_position;
    struct tmpfs_node *parent; // NULL: the root, or removed
};

struct tmpfs_node {
    struct vnode v;
    struct tmpfs *fs;
    struct tmpfs_entry *entry; // the last created name, if it still exists
    struct mutex write_lock;
    struct payer *payer; // of the node, and of its pages. NULL: root
    u32 paid_pages;      // charged to the payer; `v.lock`
    union {
        struct tmpfs_directory dir;
        struct pagetree file;
        char *target; // symlink
    };
};

static inline struct tmpfs_node *tmpfs_node(struct vnode *v)
{
    return container_of(v, struct tmpfs_node, v);
}

extern const struct vnode_ops tmpfs_ops;
extern const struct file_ops tmpfs_file_ops;

// A new mount of a file system of this type. `ops`, of all its nodes, has
// tmpfs_release or calls it.
int tmpfs_mount_as(const char *type, const struct vnode_ops *ops,
                   const struct file_ops *regular_ops, struct mount **out);
void tmpfs_release(struct vnode *v);
int tmpfs_open(struct vnode *v, struct file *f);

// A new node without a name. 0, -ENOSPC, -EDQUOT.
int tmpfs_node_create(struct tmpfs *fs, u32 mode, u32 rdev,
                      struct tmpfs_node **out);
// Charges the current task's user: users.h.
bool tmpfs_charge(u32 bytes, struct payer **out);
// False when the remaining free memory is reserved for other uses than the
// current task's files.
bool tmpfs_may_grow(void);

// Directories (tmpfs_dir.c)
// The node of this name, without a reference, or NULL.
struct tmpfs_node *tmpfs_find(struct vnode *dir, const char *name, size_t len);
// Removes the node's last created name, if it still has one, with the name's
// reference to the node.
void tmpfs_remove_name(struct tmpfs_node *n);
int tmpfs_lookup(struct vnode *dir, const char *name, size_t len,
                 struct vnode **out);
int tmpfs_create(struct vnode *dir, const char *name, size_t len, u32 mode,
                 u32 rdev, struct vnode **out);
int tmpfs_symlink(struct vnode *dir, const char *name, size_t len,
                  const char *target, struct vnode **out);
int tmpfs_link(struct vnode *dir, const char *name, size_t len,
               struct vnode *target);
int tmpfs_unlink(struct vnode *dir, const char *name, size_t len,
                 struct vnode *target);
int tmpfs_rename(struct vnode *from, const char *fname, size_t flen,
                 struct vnode *to, const char *tname, size_t tlen,
                 struct vnode *moved, struct vnode *replaced);
int tmpfs_readdir(struct vnode *dir, u64 *pos, struct dirent_sink *sink);
int tmpfs_locate(struct vnode *v, struct vnode **dir, const char **name,
                 size_t *len);

// Contents of regular files (tmpfs_file.c)
int tmpfs_truncate(struct vnode *v, u64 size);
int tmpfs_get_page(struct vnode *v, u32 index, bool write, struct frame **out);
void tmpfs_drop_pages(struct tmpfs_node *n, u32 first);
// Adds a page that is not charged to the node's payer; takes over the
// reference. -ENOMEM.
int tmpfs_add_page(struct tmpfs_node *n, u32 index, struct frame *frame);
