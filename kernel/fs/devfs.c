// /dev: a tmpfs that is filled with a node for each character device.
//
// Devices are those of the linker set and of `registered`, which only grows and
// is guarded by devices_lock. A node carries a device number; opening it looks
// the number up here, wherever the node is.

#include "kernel/fs/devfs.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/mount.h"
#include "lib/format.h"
#include "lib/set.h"
#include "lib/string.h"

#define REGISTERED_MAX 16
#define DEV_PATH "/dev"

static struct spinlock devices_lock = SPINLOCK_INIT("devices");
static const struct char_device *registered[REGISTERED_MAX];
static u32 registered_count;
static bool mounted; // /dev exists: later devices are added to it

static const struct char_device *find_registered(u32 rdev)
{
    spin_assert_held(&devices_lock);
    for (u32 i = 0; i < registered_count; i++) {
        if (registered[i]->rdev == rdev)
            return registered[i];
    }
    return NULL;
}

static const struct char_device *find_static(u32 rdev)
{
    LINKER_SET_FOR_EACH(const struct char_device, d, char_devices) {
        if ((*d)->rdev == rdev)
            return *d;
    }
    return NULL;
}

const struct char_device *char_device_find(u32 rdev)
{
    const struct char_device *found = find_static(rdev);
    if (found)
        return found;
    spin_lock(&devices_lock);
    found = find_registered(rdev);
    spin_unlock(&devices_lock);
    return found;
}

int char_device_open(struct vnode *v, struct file *file)
{
    const struct char_device *d = char_device_find(v->rdev);
    if (!d)
        return -ENXIO;
    file->ops = d->ops;
    return !d->open ? 0 : d->open(file);
}

static int make_node(struct vnode *at, const char *path,
                     const struct char_device *d)
{
    return vfs_mknod(at, path, S_IFCHR | d->mode, d->rdev);
}

static int add_registered(const struct char_device *d)
{
    int err = 0;
    if (find_static(d->rdev))
        return -EEXIST;
    spin_lock(&devices_lock);
    if (find_registered(d->rdev))
        err = -EEXIST;
    else if (registered_count == REGISTERED_MAX)
        err = -ENOSPC;
    else
        registered[registered_count++] = d;
    spin_unlock(&devices_lock);
    return err;
}

int char_device_register(const struct char_device *d)
{
    char path[64];
    int err = add_registered(d);
    if (err || !READ_ONCE(mounted))
        return err;
    format(path, sizeof(path), DEV_PATH "/%s", d->name);
    return make_node(NULL, path, d);
}

// Fills a new /dev. A name that cannot be created is skipped and logged.
static void fill(struct vnode *root)
{
    static const char *const links[][2] = {
        { "fd", "/proc/self/fd" },
        { "stdin", "/proc/self/fd/0" },
        { "stdout", "/proc/self/fd/1" },
        { "stderr", "/proc/self/fd/2" },
    };
    int failed = 0;
    LINKER_SET_FOR_EACH(const struct char_device, d, char_devices)
        failed |= make_node(root, (*d)->name, *d);
    for (u32 i = 0; i < READ_ONCE(registered_count); i++)
        failed |= make_node(root, registered[i]->name, registered[i]);
    for (u32 i = 0; i < ARRAY_SIZE(links); i++)
        failed |= vfs_symlink(root, links[i][0], links[i][1]);
    if (failed)
        log_printf("devfs: /dev is not complete\n");
}

int devfs_mount(struct mount **out)
{
    int err = tmpfs_mount(out);
    if (err)
        return err;
    (*out)->type = "devtmpfs";
    WRITE_ONCE(mounted, true);
    fill((*out)->root);
    return 0;
}
