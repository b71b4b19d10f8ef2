// Sticks and disks: mounts, vnodes and directories; see fat_fs.h.
#include "kernel/fs/fat_fs.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/block/block.h"
#include "kernel/fs/path.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"

#define BUFFER_ORDER 3u
#define PAGE_SECTORS (PAGE_SIZE / FAT_SECTOR)
#define ROOT_INO 1u
#define MODE_FILE 0666u
#define MODE_READ_ONLY 0444u

struct fat_time fat_now(void)
{
    return fat_time_of(vfs_now().sec);
}

int fat_use(struct fat_vnode *n)
{
    mutex_assert_held(&n->fs->lock);
    int err = n->checked ? 0 : fat_check(&n->fs->fat, &n->node);
    n->checked = !err;
    return err;
}

void fat_show(struct fat_vnode *n)
{
    s64 written = fat_seconds(n->node.written);
    spin_lock(&n->v.lock);
    n->v.size = n->node.size;
    n->v.pages = (u32)(((u64)n->node.size + PAGE_SIZE - 1) / PAGE_SIZE);
    n->v.mtime = n->v.ctime = (struct timespec_k){ .sec = written };
    spin_unlock(&n->v.lock);
}

// --- vnodes

static u32 mode_of(const struct fat_node *n)
{
    if (n->attributes & FAT_DIRECTORY)
        return S_IFDIR | 0777;
    return S_IFREG |
           (n->attributes & FAT_READ_ONLY ? MODE_READ_ONLY : MODE_FILE);
}

// Its place.
static u64 ino_of(const struct fat_node *n)
{
    return ((u64)n->directory << 16 | n->slot) + ROOT_INO + 1;
}

// The vnode (referenced) of a node that is in use. One whose last reference has
// gone, and that waits for the lock to end, is none any more.
static struct fat_vnode *find_vnode(struct fat_fs *fs, const struct fat_node *n)
{
    struct fat_vnode *f;
    mutex_assert_held(&fs->lock);
    list_for_each(f, &fs->vnodes, list) {
        if (f->node.slot != n->slot || f->node.directory != n->directory)
            continue;
        u32 refs = READ_ONCE(f->v.refs);
        while (refs &&
               !__atomic_compare_exchange_n(&f->v.refs, &refs, refs + 1, true,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            ;
        if (refs)
            return f;
    }
    return NULL;
}

static struct fat_vnode *new_vnode(struct fat_vnode *parent,
                                   const struct fat_node *node,
                                   const char *name)
{
    struct fat_vnode *n = kzalloc(sizeof(*n));
    if (!n)
        return NULL;
    n->name = kstrdup(name);
    if (!n->name) {
        kfree(n);
        return NULL;
    }
    vnode_init(&n->v, parent->v.mount, mode_of(node), &fat_ops,
               node->attributes & FAT_DIRECTORY ? NULL : &fat_file_ops);
    n->v.ino = ino_of(node);
    n->node = *node;
    n->fs = parent->fs;
    n->parent = parent;
    vnode_ref(&parent->v);
    list_push_back(&n->fs->vnodes, &n->list);
    fat_show(n);
    return n;
}

static void free_fs(struct fat_fs *fs)
{
    if (fs->disk)
        block_put(fs->disk, true);
    if (fs->frames)
        frame_unref(fs->frames);
    kfree(fs->mount);
    kfree(fs);
}

// Ends a vnode, and returns its parent, whose reference the caller takes over.
static struct vnode *end_vnode(struct fat_vnode *n)
{
    struct fat_fs *fs = n->fs;
    struct fat_vnode *parent = n->parent;
    mutex_lock(&fs->lock);
    list_remove(&n->list);
    if (n->v.nlink == 0)
        fat_discard(&fs->fat, &n->node);
    mutex_unlock(&fs->lock);
    kfree(n->name);
    kfree(n);
    if (parent)
        return &parent->v;
    free_fs(fs);
    return NULL;
}

static void release(struct vnode *v)
{
    do {
        v = end_vnode(fat_vnode(v));
    } while (v && vnode_unref_last(v));
}

// --- directories

static u32 depth_of(const struct fat_vnode *n)
{
    u32 depth = 0;
    for (; n->parent; n = n->parent)
        depth++;
    return depth;
}

static int copy_name(const char *name, size_t len, char out[FAT_NAME_BYTES])
{
    if (len >= FAT_NAME_BYTES)
        return -ENAMETOOLONG;
    memcpy(out, name, len);
    out[len] = 0;
    return 0;
}

static int find(struct fat_vnode *dir, const char *name, struct vnode **out)
{
    struct fat_entry e;
    struct fat_fs *fs = dir->fs;
    mutex_assert_held(&fs->lock);
    if (depth_of(dir) >= FAT_DEPTH_MAX)
        return -ELOOP;
    int err = dir->v.nlink ? fat_use(dir) : -ENOENT;
    if (!err)
        err = fat_find(&fs->fat, &dir->node, name, &e);
    if (err)
        return err;
    struct fat_vnode *n = find_vnode(fs, &e.node);
    if (!n)
        n = new_vnode(dir, &e.node, e.name);
    if (n)
        *out = &n->v;
    return n ? 0 : -ENOMEM;
}

static int lookup(struct vnode *v, const char *name, size_t len,
                  struct vnode **out)
{
    struct fat_vnode *dir = fat_vnode(v);
    char text[FAT_NAME_BYTES];
    if (len == 2 && name[0] == '.' && name[1] == '.') {
        vnode_ref(&dir->parent->v);
        *out = &dir->parent->v;
        return 0;
    }
    int err = copy_name(name, len, text);
    if (err)
        return err;
    mutex_lock(&dir->fs->lock);
    err = find(dir, text, out);
    mutex_unlock(&dir->fs->lock);
    return err;
}

static int create(struct vnode *v, const char *name, size_t len, u32 mode,
                  u32 rdev UNUSED, struct vnode **out)
{
    struct fat_vnode *n = NULL, *dir = fat_vnode(v);
    struct fat_node node;
    char text[FAT_NAME_BYTES];
    u32 type = mode & S_IFMT;
    int err = copy_name(name, len, text);
    if (type != S_IFREG && type != S_IFDIR)
        return -EPERM;
    if (err)
        return err;
    mutex_lock(&dir->fs->lock);
    err = v->nlink ? fat_use(dir) : -ENOENT;
    if (!err)
        err = fat_create(&dir->fs->fat, &dir->node, text,
                         type == S_IFDIR ? FAT_DIRECTORY : 0, fat_now(), &node);
    if (!err) {
        n = new_vnode(dir, &node, text);
        err = n ? 0 : -ENOMEM;
    }
    mutex_unlock(&dir->fs->lock);
    if (n)
        *out = &n->v;
    return err;
}

static int remove(struct fat_vnode *n)
{
    mutex_assert_held(&n->fs->lock);
    int err = fat_remove(&n->fs->fat, &n->node);
    if (!err)
        WRITE_ONCE(n->v.nlink, 0);
    return err;
}

static int unlink(struct vnode *dir UNUSED, const char *name UNUSED,
                  size_t len UNUSED, struct vnode *target)
{
    struct fat_vnode *n = fat_vnode(target);
    mutex_lock(&n->fs->lock);
    int err = n->v.nlink ? remove(n) : -ENOENT;
    mutex_unlock(&n->fs->lock);
    return err;
}

static int rename(struct vnode *from, const char *fname UNUSED,
                  size_t flen UNUSED, struct vnode *to, const char *tname,
                  size_t tlen, struct vnode *moved, struct vnode *replaced)
{
    struct fat_vnode *n = fat_vnode(moved), *dir = fat_vnode(to);
    char text[FAT_NAME_BYTES];
    int err = copy_name(tname, tlen, text);
    char *name = err ? NULL : kstrdup(text);
    if (!name)
        return err ? err : -ENOMEM;
    mutex_lock(&n->fs->lock);
    err = to->nlink && moved->nlink ? fat_use(dir) : -ENOENT;
    if (!err && replaced)
        err = remove(fat_vnode(replaced));
    if (!err)
        err = fat_rename(&n->fs->fat, &n->node, &dir->node, text);
    if (!err) {
        char *old = n->name;
        n->name = name;
        name = old;
        n->parent = dir;
        vnode_ref(to);
    }
    mutex_unlock(&n->fs->lock);
    kfree(name);
    if (!err)
        vnode_unref(from);
    return err;
}

static int readdir(struct vnode *v, u64 *pos, struct dirent_sink *sink)
{
    struct fat_vnode *dir = fat_vnode(v);
    struct fat_walk w = { .directory = dir->node.first, .slot = (u32)*pos };
    struct fat_entry e;
    mutex_lock(&dir->fs->lock);
    int err = v->nlink ? fat_use(dir) : -ENOENT;
    while (!err) {
        err = fat_read_name(&dir->fs->fat, &w, &e);
        if (err || !dirent_emit(sink, ino_of(&e.node), w.slot, mode_of(&e.node),
                                e.name, strlen(e.name)))
            break;
        *pos = w.slot;
    }
    mutex_unlock(&dir->fs->lock);
    return err == -ENOENT ? 0 : err;
}

static int locate(struct vnode *v, struct vnode **dir, const char **name,
                  size_t *len)
{
    struct fat_vnode *n = fat_vnode(v);
    if (!n->parent || !v->nlink)
        return -ENOENT;
    *dir = &n->parent->v;
    *name = n->name;
    *len = strlen(n->name);
    return 0;
}

// All is on the disk already but for the number of free clusters, and what the
// disk itself has in a cache.
static int sync(struct vnode *v)
{
    struct fat_fs *fs = fat_vnode(v)->fs;
    mutex_lock(&fs->lock);
    int err = fat_sync(&fs->fat);
    if (!err && !fs->read_only)
        err = block_flush(fs->disk);
    mutex_unlock(&fs->lock);
    return err;
}

const struct vnode_ops fat_ops = {
    .lookup = lookup,
    .create = create,
    .unlink = unlink,
    .rename = rename,
    .readdir = readdir,
    .truncate = fat_truncate,
    .release = release,
    .locate = locate,
    .sync = sync,
};

// --- mounts

static int statfs(struct mount *m, u64 *total_pages, u64 *free_pages)
{
    struct fat_fs *fs = fat_vnode(m->root)->fs;
    u32 free;
    mutex_lock(&fs->lock);
    int err = fat_count_free(&fs->fat, &free);
    mutex_unlock(&fs->lock);
    if (err)
        return err;
    *total_pages =
        (u64)fs->fat.clusters * fs->fat.cluster_sectors / PAGE_SECTORS;
    *free_pages = (u64)free * fs->fat.cluster_sectors / PAGE_SECTORS;
    return 0;
}

static int transfer(void *arg, bool write, u32 sector, u32 count, void *data)
{
    struct fat_fs *fs = arg;
    if (write && fs->read_only)
        return -EROFS;
    return block_transfer(fs->disk, write, fs->start + sector, count, data);
}

static struct fat_vnode *new_root(struct fat_fs *fs)
{
    struct fat_vnode *root = kzalloc(sizeof(*root));
    if (!root)
        return NULL;
    fat_root(&fs->fat, &root->node);
    vnode_init(&root->v, NULL, mode_of(&root->node), &fat_ops, NULL);
    root->v.ino = ROOT_INO;
    root->fs = fs;
    root->checked = true;
    list_push_back(&fs->vnodes, &root->list);
    return root;
}

static const char *find_volume(struct fat_fs *fs, u32 partition)
{
    const struct partition_table *table;
    const char *why = block_partitions(fs->disk, &table);
    if (why)
        return why;
    const struct partition *p = partition_find(table, PARTITION_WHOLE);
    if (!p || partition != PARTITION_FIRST)
        p = partition_find(table, partition);
    if (!p)
        return partition == PARTITION_FIRST   ? "it has no FAT partition"
               : partition == PARTITION_WHOLE ? "it has partitions: name one"
                                              : "it has no such partition";
    if (p->unfit)
        return p->unfit;
    if (p->type == PARTITION_OTHER)
        return "the type of the partition is not FAT";
    u64 sectors = MIN(p->sectors, (u64)UINT32_MAX);
    struct fat_disk disk = { transfer, fs, (u32)sectors, BLOCK_AT_ONCE };
    fs->start = p->start;
    return fat_mount(&fs->fat, &disk);
}

static int mount_disk(struct fat_fs *fs, const char *name, u32 partition)
{
    const char *bus = block_bus(fs->disk);
    const char *why = find_volume(fs, partition);
    if (why) {
        log_printf("%s: %s: not mounted: %s\n", bus, name, why);
        return -EINVAL;
    }
    struct fat_vnode *root = new_root(fs);
    if (root)
        fs->mount = mount_create("vfat", "", &root->v, statfs);
    if (!fs->mount) {
        kfree(root);
        return -ENOMEM;
    }
    fs->mount->read_only = fs->read_only;
    log_printf("%s: %s: FAT%u, clusters of %u bytes\n", bus, name, fs->fat.bits,
               fs->fat.cluster_sectors * FAT_SECTOR);
    return 0;
}

// The stick's first FAT partition (name NULL), or the partition that is named.
static int take(const char *name, struct block_device **disk, u32 *partition)
{
    char of_disk[BLOCK_NAME_BYTES];
    *partition = PARTITION_FIRST;
    if (!name)
        return block_take(NULL, disk);
    if (!partition_name(name, of_disk, sizeof(of_disk), partition))
        return -ENXIO;
    return block_take(of_disk, disk);
}

// A stick that cannot be mounted is not tried again without its name, unless
// memory was all that it lacked.
int fat_fs_mount(const char *name, bool read_only, struct mount **out)
{
    struct block_device *disk;
    u32 partition;
    int err = take(name, &disk, &partition);
    if (err)
        return err;
    struct fat_fs *fs = kzalloc(sizeof(*fs));
    if (!fs) {
        block_put(disk, true);
        return -ENOMEM;
    }
    fs->disk = disk;
    fs->read_only = read_only || block_read_only(disk);
    list_init(&fs->vnodes);
    mutex_init(&fs->lock, "FAT");
    fs->frames = frame_alloc(BUFFER_ORDER, FRAME_LOW, FRAME_BUFFER);
    err = fs->frames ? 0 : -ENOMEM;
    if (!err) {
        fs->buffer = frame_va(fs->frames);
        err = mount_disk(fs, name ? name : block_name(disk), partition);
    }
    if (!err) {
        *out = fs->mount;
        return 0;
    }
    block_put(disk, name || err == -ENOMEM);
    fs->disk = NULL;
    free_fs(fs);
    return err;
}

bool fat_fs_busy(const struct mount *m, u32 ours)
{
    mutex_assert_held(&namespace_lock);
    return READ_ONCE(m->root->refs) != 1 + ours;
}

bool fat_fs_gone(const struct mount *m)
{
    return block_gone(fat_vnode(m->root)->fs->disk);
}
