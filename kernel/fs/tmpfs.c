// tmpfs: creation and destruction of its nodes, and the mount.
#include "kernel/fs/tmpfs.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/pipe.h"
#include "kernel/mm/heap.h"
#include "kernel/task/users.h"
#include "lib/string.h"

SLAB_CACHE_COUNTED(tmpfs_node_cache, struct tmpfs_node, v.refs);

// A part of the low zone is kept from files, so that the machine keeps running
// when /tmp is full. Tasks' memory may use the reserve. Root's files may use
// most of it: they grow while users have all memory that is not root's
// (ROOTS_PART of kernel/mm/frame_init.c, a tenth).
#define RESERVE_PART 8        // kept from files of users
#define ROOTS_RESERVE_PART 20 // kept from root's
// The free frames are counted once per this many requested frames.
#define FRAMES_PER_CHECK 32

static u32 reserved_part(bool root)
{
    return root ? ROOTS_RESERVE_PART : RESERVE_PART;
}

bool tmpfs_may_grow(void)
{
    static u32 budgets[2]; // racing CPUs may lose a count: a rough limit
    bool root = frames_acts_for_root();
    u32 *budget = &budgets[root], left = READ_ONCE(*budget);
    if (left) {
        WRITE_ONCE(*budget, left - 1);
        return true;
    }
    struct frame_stats stats;
    frame_stats(&stats);
    if (stats.zone_free[0] < stats.zone_total[0] / reserved_part(root))
        return false;
    WRITE_ONCE(*budget, FRAMES_PER_CHECK);
    return true;
}

// At start-up there is no current task.
bool tmpfs_charge(u32 bytes, struct payer **out)
{
    *out = NULL;
    return frames_acts_for_root() || charge_current(bytes, out);
}

int tmpfs_node_create(struct tmpfs *fs, u32 mode, u32 rdev,
                      struct tmpfs_node **out)
{
    struct payer *payer = NULL;
    if (!tmpfs_may_grow())
        return -ENOSPC;
    if (!tmpfs_charge(sizeof(**out), &payer))
        return -EDQUOT;
    struct tmpfs_node *n = slab_alloc(&tmpfs_node_cache);
    if (!n) {
        user_discharge(payer, sizeof(*n));
        return -ENOSPC;
    }
    *out = n;
    bool regular = (mode & S_IFMT) == S_IFREG;
    vnode_init(&n->v, fs->mount, mode, fs->ops,
               regular ? fs->regular_ops : NULL);
    n->v.rdev = rdev;
    n->fs = fs;
    n->entry = NULL;
    mutex_init(&n->write_lock, "file write");
    n->payer = payer;
    n->paid_pages = 0;
    memset(&n->dir, 0, sizeof(n->dir));
    if ((mode & S_IFMT) == S_IFDIR) {
        n->v.nlink = 2;
        list_init(&n->dir.order);
    } else {
        n->v.nlink = 0; // until it has a name
    }
    __atomic_fetch_add(&fs->nodes, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&fs->unnamed, 1, __ATOMIC_RELAXED);
    return 0;
}

static void free_node(struct tmpfs_node *n)
{
    struct payer *payer = n->payer;
    slab_free(&tmpfs_node_cache, n);
    user_discharge(payer, sizeof(*n));
}

void tmpfs_release(struct vnode *v)
{
    struct tmpfs_node *n = tmpfs_node(v);
    struct tmpfs *fs = n->fs;
    switch (vnode_type(v)) {
    case S_IFDIR:
        assert(n->dir.count == 0);
        kfree(n->dir.table);
        break;
    case S_IFREG:
        tmpfs_drop_pages(n, 0);
        break;
    case S_IFLNK:
        if (n->target)
            user_discharge(n->payer, (u32)strlen(n->target) + 1);
        kfree(n->target);
        break;
    }
    free_node(n);
    __atomic_fetch_sub(&fs->unnamed, 1, __ATOMIC_RELAXED);
    if (__atomic_sub_fetch(&fs->nodes, 1, __ATOMIC_ACQ_REL) == 0) {
        kfree(fs->mount);
        kfree(fs);
    }
}

int tmpfs_open(struct vnode *v, struct file *f)
{
    switch (vnode_type(v)) {
    case S_IFCHR:
        return char_device_open(v, f);
    case S_IFIFO:
        return fifo_open(v, f);
    default:
        return 0;
    }
}

static int readlink(struct vnode *v, char *buf, size_t size)
{
    size_t len = strlen(tmpfs_node(v)->target);
    memcpy(buf, tmpfs_node(v)->target, MIN(len, size));
    return (int)MIN(len, size);
}

static int statfs(struct mount *m UNUSED, u64 *total_pages, u64 *free_pages)
{
    struct frame_stats stats;
    frame_stats(&stats);
    u64 reserve = stats.zone_total[0] / reserved_part(frames_acts_for_root());
    u64 free = stats.zone_free[0];
    *total_pages = stats.zone_total[0] - reserve;
    *free_pages = free > reserve ? free - reserve : 0;
    return 0;
}

const struct vnode_ops tmpfs_ops = {
    .lookup = tmpfs_lookup,
    .create = tmpfs_create,
    .link = tmpfs_link,
    .unlink = tmpfs_unlink,
    .rename = tmpfs_rename,
    .readdir = tmpfs_readdir,
    .readlink = readlink,
    .open = tmpfs_open,
    .truncate = tmpfs_truncate,
    .get_page = tmpfs_get_page,
    .release = tmpfs_release,
    .locate = tmpfs_locate,
    .symlink = tmpfs_symlink,
};

int tmpfs_mount_as(const char *type, const struct vnode_ops *ops,
                   const struct file_ops *regular_ops, struct mount **out)
{
    struct tmpfs *fs = kzalloc(sizeof(*fs));
    if (!fs)
        return -ENOMEM;
    fs->ops = ops;
    fs->regular_ops = regular_ops;
    fs->nodes = 1; // keeps `fs` during the creation of the mount
    struct tmpfs_node *root = NULL;
    if (!tmpfs_node_create(fs, S_IFDIR | 0755, 0, &root))
        fs->mount = mount_create(type, "", &root->v, statfs);
    if (!fs->mount) {
        if (root)
            free_node(root);
        kfree(fs);
        return -ENOMEM;
    }
    fs->nodes--;
    *out = fs->mount;
    return 0;
}

int tmpfs_mount(struct mount **out)
{
    return tmpfs_mount_as("tmpfs", &tmpfs_ops, &tmpfs_file_ops, out);
}
