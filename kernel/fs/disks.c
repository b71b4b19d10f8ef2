// The stick at /usb and the disk at /disk: mounted when they appear, unmounted
// when they have gone; files that are still open give EIO. Without a stick
// there is no /usb, so nothing is written into memory instead. One stick at a
// time; the next one follows it. The disk is the partition that the kernel
// argument names: no other one is mounted by itself.
//
// A thread does one change and ends, as the file system must not be used in the
// threads of drivers. `places_lock` is taken before namespace_lock.
#include "kernel/base/cmdline.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/block/block.h"
#include "kernel/fs/mount.h"
#include "kernel/fs/path.h"
#include "kernel/sched/thread.h"
#include "lib/string.h"

KERNEL_ARG(disk, "disk=NAME[,ro]: mounts this partition (sata0p1) of a disk at "
                 "/disk");

enum state { NOTHING, MOUNTED, GONE };

struct place {
    const char *path, *what, *bus;
    enum state state;
};

static struct mutex places_lock = MUTEX_INIT(places_lock, "disks' places");

static int look(const struct mount *m, void *arg)
{
    struct place *place = arg;
    if (strcmp(m->path, place->path) == 0 && strcmp(m->type, "vfat") == 0)
        place->state = fat_fs_gone(m) ? GONE : MOUNTED;
    return 0;
}

static void remove_gone(struct place *place)
{
    mutex_assert_held(&places_lock);
    place->state = NOTHING;
    mount_for_each(look, place);
    if (place->state != GONE)
        return;
    vfs_detach(place->path);
    vfs_rmdir(NULL, place->path);
    log_printf("%s: %s is unmounted: the %s has gone\n", place->bus,
               place->path, place->what);
    place->state = NOTHING;
}

static void mount_there(const struct place *place, struct mount *m)
{
    mutex_assert_held(&places_lock);
    int err = vfs_mkdir(NULL, place->path, 0755);
    err = err && err != -EEXIST ? err : vfs_mount_at(place->path, m);
    if (err)
        mount_discard(m);
    if (err)
        log_printf("%s: the %s cannot be mounted: error %d\n", place->bus,
                   place->what, -err);
    else
        log_printf("%s: the %s is at %s%s\n", place->bus, place->what,
                   place->path, m->read_only ? ", read-only" : "");
}

static void serve_stick(void)
{
    struct place place = { "/usb", "stick", "usb", NOTHING };
    struct mount *m;
    int err;
    remove_gone(&place);
    if (place.state == MOUNTED)
        return;
    do {
        err = mount_by_type("vfat", NULL, false, &m);
    } while (err == -EINVAL); // that one has no FAT
    if (!err)
        mount_there(&place, m);
    else if (err != -ENXIO)
        log_printf("usb: the stick cannot be mounted: error %d\n", -err);
}

// The name that the argument has, and whether ",ro" follows. False: there is no
// argument, or it names no disk.
static bool wanted_disk(char *name, size_t size, bool *read_only)
{
    const char *value = arg_disk.value, *comma = strchr(value, ',');
    size_t length = comma ? (size_t)(comma - value) : strlen(value);
    *read_only = comma != NULL;
    if (!arg_disk.present)
        return false;
    if (!length || length >= size || (comma && strcmp(comma, ",ro") != 0)) {
        log_printf("warning: disk=%s is ignored: it is not NAME or NAME,ro\n",
                   value);
        arg_disk.present = false;
        return false;
    }
    memcpy(name, value, length);
    name[length] = 0;
    return true;
}

// It is tried, with each change of disks, until it has been mounted, or cannot
// be: the disk that comes later in its place may be another one.
static void serve_disk(void)
{
    struct place place = { "/disk", "disk", "disk", NOTHING };
    char name[BLOCK_NAME_BYTES + 8];
    struct mount *m;
    bool read_only;
    remove_gone(&place);
    if (place.state == MOUNTED || !wanted_disk(name, sizeof(name), &read_only))
        return;
    int err = mount_by_type("vfat", name, read_only, &m);
    if (err == -ENXIO)
        return;
    arg_disk.present = err == -ENOMEM;
    if (!err)
        mount_there(&place, m);
    else
        log_printf("disk=%s cannot be mounted: error %d\n", name, -err);
}

static void serve(void *arg UNUSED)
{
    mutex_lock(&places_lock);
    block_look();
    serve_stick();
    serve_disk();
    mutex_unlock(&places_lock);
}

void block_devices_changed(void)
{
    if (kthread_create("disks", serve, NULL, NULL))
        log_printf("disk: no memory for the thread that mounts disks\n");
}
