// Calls about where a task stands in the tree, and what is mounted there.
#include "kernel/fs/mount.h"
#include "kernel/mm/heap.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/where.h"
#include "lib/string.h"

// Puts a directory (reference consumed, always) in a task's place.
static int enter(struct vnode **place, struct vnode *v)
{
    int err = vnode_is_dir(v) ? vnode_may(v, MAY_X) : -ENOTDIR;
    if (err) {
        vnode_unref(v);
        return err;
    }
    // Walks look at it under namespace_lock, other tasks under tasks_lock.
    mutex_lock(&namespace_lock);
    u32 flags = spin_lock_irq(&tasks_lock);
    struct vnode *old = *place;
    *place = v;
    spin_unlock_irq(&tasks_lock, flags);
    mutex_unlock(&namespace_lock);
    vnode_unref(old);
    return 0;
}

SYSCALL_HANDLER(chdir)
{
    struct vnode *v;
    int err = where_lookup(AT_FDCWD, a, 0, &v);
    return err ? err : enter(&current_task()->cwd, v);
}

SYSCALL_HANDLER(fchdir)
{
    struct fd_ref r;
    int err = fd_borrow(a, &r);
    if (err)
        return err;
    struct vnode *v = r.file->vnode;
    if (v) {
        vnode_ref(v);
        err = enter(&current_task()->cwd, v);
    } else {
        err = -ENOTDIR;
    }
    fd_return(&r);
    return err;
}

SYSCALL_HANDLER(chroot)
{
    struct vnode *v;
    if (!is_root())
        return -EPERM;
    int err = where_lookup(AT_FDCWD, a, 0, &v);
    return err ? err : enter(&current_task()->root, v);
}

SYSCALL_HANDLER(getcwd)
{
    struct vnode *cwd;
    char *text = kmalloc(PATH_MAX_LEN + 1);
    if (!text)
        return -ENOMEM;
    mutex_lock(&namespace_lock);
    cwd = current_task()->cwd;
    vnode_ref(cwd);
    mutex_unlock(&namespace_lock);
    int len = vfs_path(cwd, text, PATH_MAX_LEN + 1);
    vnode_unref(cwd);
    if (len >= 0 && (u32)len >= b)
        len = -ERANGE;
    if (len >= 0 && copy_to_user(a, text, (size_t)len + 1))
        len = -EFAULT;
    kfree(text);
    return len < 0 ? len : len + 1;
}

// --- mounts -----------------------------------------------------------------

#define MS_NOSUID 2u // no set-user-id bit is obeyed
#define MS_SYNCHRONOUS 16u
#define MS_REMOUNT 32u
#define MS_DIRSYNC 128u
#define MS_NOATIME 1024u // reading changes no times
#define MS_NODIRATIME 2048u
#define MS_SILENT 32768u
#define TYPE_MAX 32

// What is so anyway. All else is refused: read-only mounts, bind mounts, ...
#define MOUNT_FLAGS                                                      \
    (MS_NOSUID | MS_SYNCHRONOUS | MS_REMOUNT | MS_DIRSYNC | MS_NOATIME | \
     MS_NODIRATIME | MS_SILENT)
#define MS_MGC_VAL 0xc0ed0000u // programs of the last century set it
#define MS_MGC_MSK 0xffff0000u

// File systems here have no options.
static int check_options(u32 data)
{
    char first = 0;
    if (data && copy_from_user(&first, data, 1))
        return -EFAULT;
    return first ? -EINVAL : 0;
}

static int mount_new(u32 type_addr, const char *path, u32 flags)
{
    char type[TYPE_MAX];
    struct mount *m;
    int err = copy_string_from_user(type, type_addr, sizeof(type));
    if (err < 0)
        return err == -ENAMETOOLONG ? -ENODEV : err;
    err = mount_by_type(type, &m);
    if (err)
        return err;
    m->nosuid = flags & MS_NOSUID;
    err = vfs_mount_at(path, m);
    if (err)
        mount_discard(m);
    return err;
}

// mount(source, target, type, flags, data): the source means nothing to the
// file systems here, and a remount changes nothing but MS_NOSUID.
SYSCALL_HANDLER(mount)
{
    struct path_arg path;
    if (!is_root())
        return -EPERM;
    if ((d & MS_MGC_MSK) == MS_MGC_VAL)
        d &= ~MS_MGC_MSK;
    if (d & ~MOUNT_FLAGS)
        return -EINVAL;
    int err = check_options(e);
    if (!err)
        err = path_get(&path, b);
    if (err)
        return err;
    if (d & MS_REMOUNT) {
        struct vnode *v;
        err = vfs_lookup(NULL, path.text, WALK_FOLLOW, &v);
        if (!err) {
            err = vnode_is_mount_root(v) ? 0 : -EINVAL;
            if (!err)
                WRITE_ONCE(v->mount->nosuid, d & MS_NOSUID);
            vnode_unref(v);
        }
    } else {
        err = mount_new(c, path.text, d);
    }
    path_put(&path);
    return err;
}

#define MNT_FORCE 1u // for servers that do not answer, of which there are none
#define MNT_DETACH 2u

SYSCALL_HANDLER(umount2)
{
    struct path_arg path;
    if (!is_root())
        return -EPERM;
    if (b & ~(MNT_FORCE | MNT_DETACH))
        return -EINVAL;
    int err = path_get(&path, a);
    if (err)
        return err;
    err = b & MNT_DETACH ? vfs_detach(path.text) : vfs_unmount(path.text);
    path_put(&path);
    return err;
}

SYSCALL_HANDLER(umount)
{
    return sys_umount2(a, 0, c, d, e, f);
}
