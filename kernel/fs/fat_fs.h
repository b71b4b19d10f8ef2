// The file system of sticks and disks: FAT (fat.h) in a partition of a disk
// (kernel/block/block.h).
//
// fs->lock, a mutex, guards the file system, its buffer, and what its vnodes
// have of it; it is taken after namespace_lock, and may be held while user
// memory is accessed and while the disk is waited for. A vnode exists while it
// is used; each one holds a reference to that of its directory. Pages cannot be
// mapped: programs do not run from a disk.
#pragma once

#include "kernel/fs/fat.h"
#include "kernel/fs/mount.h"
#include "lib/list.h"

#define FAT_BUFFER 32768u // of reads and writes: BLOCK_AT_ONCE sectors
#define FAT_DEPTH_MAX 64u // directories in each other; also ends their cycles

struct fat_fs {
    struct fat fat;
    struct mutex lock;
    struct block_device *disk;
    u64 start; // of the partition, in sectors
    bool read_only;
    struct mount *mount;
    struct list vnodes;
    struct frame *frames;
    u8 *buffer;
};

struct fat_vnode {
    struct vnode v;
    struct list list;
    struct fat_fs *fs;
    struct fat_vnode *parent; // NULL: the root
    struct fat_node node;
    char *name;
    bool checked; // fat_check was right
};

static inline struct fat_vnode *fat_vnode(struct vnode *v)
{
    return container_of(v, struct fat_vnode, v);
}

extern const struct file_ops fat_file_ops;
extern const struct vnode_ops fat_ops;

// All under fs->lock. The vnode can be used: 0 or -EIO.
int fat_use(struct fat_vnode *n);
struct fat_time fat_now(void);
// Makes what the vnode shows equal to its node.
void fat_show(struct fat_vnode *n);
int fat_truncate(struct vnode *v, u64 size); // takes fs->lock
