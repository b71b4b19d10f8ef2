// The stick at /usb: mounted when it appears, unmounted when it has gone; files
// that are still open give EIO. Without a stick there is no /usb, so nothing is
// written into memory instead. One stick at a time; the next one follows it.
//
// A thread does one change and ends, as the file system must not be used in the
// threads of USB controllers. `stick_lock` is taken before namespace_lock.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/mount.h"
#include "kernel/fs/path.h"
#include "kernel/sched/thread.h"
#include "kernel/usb/disk.h"
#include "lib/string.h"

#define PLACE "/usb"

static struct mutex stick_lock = MUTEX_INIT(stick_lock, "stick at /usb");

enum state { NOTHING, STICK, STICK_GONE };

static int look(const struct mount *m, void *arg)
{
    enum state *state = arg;
    if (strcmp(m->path, PLACE) == 0 && strcmp(m->type, "vfat") == 0)
        *state = fat_fs_gone(m) ? STICK_GONE : STICK;
    return 0;
}

static void mount_next(void)
{
    struct mount *m;
    int err;
    do {
        err = mount_by_type("vfat", &m);
    } while (err == -EINVAL); // that one has no FAT
    if (err == -ENXIO)
        return;
    if (!err) {
        err = vfs_mkdir(NULL, PLACE, 0755);
        err = err && err != -EEXIST ? err : vfs_mount_at(PLACE, m);
        if (err)
            mount_discard(m);
    }
    if (err)
        log_printf("usb: the stick cannot be mounted: error %d\n", -err);
    else
        log_printf("usb: the stick is at " PLACE "\n");
}

static void serve(void *arg UNUSED)
{
    enum state state = NOTHING;
    mutex_lock(&stick_lock);
    mount_for_each(look, &state);
    if (state == STICK_GONE) {
        vfs_detach(PLACE);
        vfs_rmdir(NULL, PLACE);
        log_printf("usb: " PLACE " is unmounted: the stick has gone\n");
    }
    if (state != STICK)
        mount_next();
    mutex_unlock(&stick_lock);
}

void usb_disks_changed(void)
{
    if (kthread_create("usb/stick", serve, NULL, NULL))
        log_printf("usb: no memory for the thread that mounts the stick\n");
}
