// Mounts: the list, mounting over a directory, and unmounting.
//
// `namespace_lock` guards the list and the covered/mounted_here links.
#include "kernel/fs/mount.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/path.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "lib/string.h"

static struct list mounts = LIST_INIT(mounts);

// Unmounted, and kept for the next mount of the type: the last /dev with its
// contents.
static struct list retained = LIST_INIT(retained);
// Unmounted with `umount -l` while in use.
static struct list detached = LIST_INIT(detached);

static const struct file_system {
    const char *type;
    int (*mount)(struct mount **out);
    int (*mount_disk)(const char *disk, bool read_only, struct mount **out);
    bool (*busy)(const struct mount *m, u32 ours);
    // Frees the contents, if there are any; the mount ends with its last vnode.
    void (*clear)(struct vnode *root);
    bool persistent; // the contents outlive the mount
    // Its directories can vanish, as those of tasks do; a mount over one of
    // them would then be unreachable.
    bool transient_dirs;
} file_systems[] = {
    { "tmpfs", tmpfs_mount, NULL, tmpfs_busy, tmpfs_clear, false, false },
    { "proc", procfs_mount, NULL, procfs_busy, NULL, false, true },
    { "devtmpfs", devfs_mount, NULL, tmpfs_busy, tmpfs_clear, true, false },
    { "sensors", sensors_mount, NULL, tmpfs_busy, tmpfs_clear, true, false },
    { "vfat", NULL, fat_fs_mount, fat_fs_busy, NULL, false, false },
};

static const struct file_system *find_type(const char *type)
{
    for (u32 i = 0; i < ARRAY_SIZE(file_systems); i++) {
        if (strcmp(file_systems[i].type, type) == 0)
            return &file_systems[i];
    }
    return NULL;
}

struct mount *mount_create(const char *type, const char *path,
                           struct vnode *root, statfs_fn statfs)
{
    static u32 last_dev;
    struct mount *m = kzalloc(sizeof(*m));
    if (!m)
        return NULL;
    list_init(&m->node);
    m->type = type;
    strlcpy(m->path, path, sizeof(m->path));
    m->root = root;
    m->dev = __atomic_add_fetch(&last_dev, 1, __ATOMIC_RELAXED);
    m->statfs = statfs;
    root->mount = m;
    return m;
}

static struct mount *find_retained(const char *type)
{
    mutex_assert_held(&namespace_lock);
    struct mount *m;
    list_for_each(m, &retained, node) {
        if (strcmp(m->type, type) == 0)
            return m;
    }
    return NULL;
}

static struct mount *take_retained(const char *type)
{
    struct mount *m = find_retained(type);
    if (m)
        list_remove(&m->node);
    return m;
}

// Ends a mount that is out of the tree, or retains it. Under namespace_lock.
static void release_mount(struct mount *m)
{
    mutex_assert_held(&namespace_lock);
    const struct file_system *fs = find_type(m->type);
    if (!fs || (fs->persistent && !find_retained(m->type))) {
        list_push_back(&retained, &m->node);
        return;
    }
    if (fs->clear)
        fs->clear(m->root);
    vnode_unref(m->root);
}

// Ends detached mounts that are no longer in use.
static void release_detached(void)
{
    mutex_assert_held(&namespace_lock);
    struct mount *m, *next;
    list_for_each_safe(m, next, &detached, node) {
        if (find_type(m->type)->busy(m, 0))
            continue;
        list_remove(&m->node);
        m->detached = false;
        release_mount(m);
    }
}

int mount_by_type(const char *type, const char *disk, bool read_only,
                  struct mount **out)
{
    const struct file_system *fs = find_type(type);
    if (!fs)
        return -ENODEV;
    if (read_only && !fs->mount_disk)
        return -EINVAL;
    mutex_lock(&namespace_lock);
    release_detached();
    *out = take_retained(type);
    mutex_unlock(&namespace_lock);
    if (*out)
        return 0;
    return fs->mount_disk ? fs->mount_disk(disk, read_only, out)
                          : fs->mount(out);
}

void mount_discard(struct mount *m)
{
    mutex_lock(&namespace_lock);
    release_mount(m);
    mutex_unlock(&namespace_lock);
}

// The first mount becomes the root: it covers no directory.
static void mount_root(struct mount *m)
{
    assert(m->root);
    struct task *task = current_task();
    strlcpy(m->path, "/", sizeof(m->path));
    list_push_back(&mounts, &m->node);
    vnode_ref(m->root);
    vnode_ref(m->root);
    task->root = task->cwd = m->root;
}

static int mount_over(struct vnode *dir, struct mount *m)
{
    mutex_assert_held(&namespace_lock);
    if (!vnode_is_dir(dir))
        return -ENOTDIR;
    if (dir->nlink == 0)
        return -ENOENT; // removed since it was looked up
    if (dir->mount->detached)
        return -EINVAL; // it could never be unmounted
    if (!vnode_is_mount_root(dir) &&
        find_type(dir->mount->type)->transient_dirs)
        return -EPERM;
    if (dir->mounted_here)
        return -EBUSY; // another thread has mounted there
    vnode_ref(dir);
    m->covered = dir;
    dir->mounted_here = m;
    list_push_back(&mounts, &m->node);
    return 0;
}

int vfs_mount_at(const char *path, struct mount *m)
{
    struct vnode *dir;
    if (list_empty(&mounts)) {
        mount_root(m);
        return 0;
    }
    int err = vfs_lookup(NULL, path, WALK_FOLLOW, &dir);
    if (err)
        return err;
    if (vfs_path(dir, m->path, sizeof(m->path)) < 0)
        strlcpy(m->path, path, sizeof(m->path));
    mutex_lock(&namespace_lock);
    err = mount_over(dir, m);
    mutex_unlock(&namespace_lock);
    vnode_unref(dir);
    return err;
}

static bool has_mounts_inside(const struct mount *m)
{
    mutex_assert_held(&namespace_lock);
    struct mount *other;
    list_for_each(other, &mounts, node) {
        if (other->covered && other->covered->mount == m)
            return true;
    }
    return false;
}

// Takes the mount out of the tree. The caller keeps its reference to the root.
static int unmount(struct vnode *root, bool in_use)
{
    mutex_assert_held(&namespace_lock);
    struct mount *m = root->mount;
    if (!vnode_is_mount_root(root))
        return -EINVAL;
    if (!m->covered || has_mounts_inside(m))
        return -EBUSY;
    bool busy = find_type(m->type)->busy(m, 1);
    if (busy && !in_use)
        return -EBUSY;
    list_remove(&m->node);
    m->covered->mounted_here = NULL;
    vnode_unref(m->covered);
    m->covered = NULL;
    if (busy) {
        m->detached = true;
        list_push_back(&detached, &m->node);
    } else {
        release_mount(m);
    }
    return 0;
}

static int unmount_at(const char *path, bool in_use)
{
    struct vnode *root;
    int err = vfs_lookup(NULL, path, WALK_FOLLOW, &root);
    if (err)
        return err;
    mutex_lock(&namespace_lock);
    release_detached();
    err = unmount(root, in_use);
    mutex_unlock(&namespace_lock);
    vnode_unref(root);
    return err;
}

int vfs_unmount(const char *path)
{
    return unmount_at(path, false);
}

int vfs_detach(const char *path)
{
    return unmount_at(path, true);
}

int mount_for_each(int (*fn)(const struct mount *m, void *arg), void *arg)
{
    struct mount *m;
    int result = 0;
    mutex_lock(&namespace_lock);
    list_for_each(m, &mounts, node) {
        result = fn(m, arg);
        if (result)
            break;
    }
    mutex_unlock(&namespace_lock);
    return result;
}
