// The file system's start-up.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/fs/initrd.h"
#include "kernel/fs/mount.h"
#include "kernel/mm/frame.h"

static void mount_or_panic(const char *type, const char *path)
{
    struct mount *m;
    int err = vfs_mkdir(NULL, path, 0755);
    if (!err || err == -EEXIST)
        err = mount_by_type(type, NULL, false, &m);
    if (!err || err == -EEXIST)
        err = vfs_mount_at(path, m);
    if (err)
        panic("cannot mount %s on %s: error %d", type, path, -err);
}

void vfs_init(void)
{
    struct mount *root;
    if (tmpfs_mount(&root) || vfs_mount_at("/", root))
        boot_lacks_memory("the root directory");
    file_numbers_init();
    initrd_init();
    mount_or_panic("devtmpfs", "/dev");
    mount_or_panic("proc", "/proc");
    mount_or_panic("sensors", "/sensors");
}
