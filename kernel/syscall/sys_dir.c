// Calls on a task's root and current directory, and on mounts.
#include "kernel/fs/mount.h"
#include "kernel/mm/heap.h"
#include "kernel/syscall/at_path.h"
#include "kernel/syscall/syscall.h"
#include "lib/string.h"

// Replaces a task's root or current directory (reference always consumed).
static int enter(struct vnode **place, struct vnode *v)
{
    int err = vnode_is_dir(v) ? vnode_may(v, MAY_X) : -ENOTDIR;
    if (err) {
        vnode_unref(v);
        return err;
    }
    // Walks read it under namespace_lock, other tasks under tasks_lock.
    mutex_lock(&namespace_lock);
    u32 flags = spin_lock_irq(&tasks_lock);
    struct vnode *old = *place;
    *place = v;
    spin_unlock_irq(&tasks_lock, flags);
    mutex_unlock(&namespace_lock);
    vnode_unref(old);
    return 0;
}

s32 sys_chdir(u32 path)
{
    struct vnode *v;
    int err = at_path_lookup(AT_FDCWD, path, 0, &v);
    return err ? err : enter(&current_task()->cwd, v);
}

s32 sys_fchdir(u32 fd)
{
    struct fd_ref r;
    int err = fd_borrow(fd, &r);
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

s32 sys_chroot(u32 path)
{
    struct vnode *v;
    if (!is_root())
        return -EPERM;
    int err = at_path_lookup(AT_FDCWD, path, 0, &v);
    return err ? err : enter(&current_task()->root, v);
}

s32 sys_getcwd(u32 buffer, u32 size)
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
    if (len >= 0 && (u32)len >= size)
        len = -ERANGE;
    if (len >= 0 && copy_to_user(buffer, text, (size_t)len + 1))
        len = -EFAULT;
    kfree(text);
    return len < 0 ? len : len + 1;
}

// --- mounts -----------------------------------------------------------------

#define MS_RDONLY 1u
#define MS_NOSUID 2u // set-user-id bits are ignored
#define MS_SYNCHRONOUS 16u
#define MS_REMOUNT 32u
#define MS_DIRSYNC 128u
#define MS_NOATIME 1024u // reading does not change times
#define MS_NODIRATIME 2048u
#define MS_SILENT 32768u
#define TYPE_MAX 32
#define SOURCE_MAX 32

// Flags that already hold, and MS_RDONLY, for disks. All others are refused:
// bind mounts, ...
#define MOUNT_FLAGS                                                     \
    (MS_RDONLY | MS_NOSUID | MS_SYNCHRONOUS | MS_REMOUNT | MS_DIRSYNC | \
     MS_NOATIME | MS_NODIRATIME | MS_SILENT)
#define MS_MGC_VAL 0xc0ed0000u // old programs set it
#define MS_MGC_MSK 0xffff0000u

// The file systems here take no options.
static int check_options(u32 data)
{
    char first = 0;
    if (data && copy_from_user(&first, data, 1))
        return -EFAULT;
    return first ? -EINVAL : 0;
}

// What a file system is on: a disk's partition, or nothing (none, or no text).
static int copy_source(u32 addr, char source[SOURCE_MAX])
{
    *source = 0;
    int err = addr ? copy_string_from_user(source, addr, SOURCE_MAX) : 0;
    if (err == -ENAMETOOLONG)
        return -ENXIO;
    if (err >= 0 && strcmp(source, "none") == 0)
        *source = 0;
    return err;
}

static int mount_new(u32 source_addr, u32 type_addr, const char *path,
                     u32 flags)
{
    char type[TYPE_MAX], source[SOURCE_MAX];
    struct mount *m;
    int err = copy_string_from_user(type, type_addr, sizeof(type));
    if (err < 0)
        return err == -ENAMETOOLONG ? -ENODEV : err;
    err = copy_source(source_addr, source);
    if (err < 0)
        return err;
    err = mount_by_type(type, *source ? source : NULL, flags & MS_RDONLY, &m);
    if (err)
        return err;
    m->nosuid = flags & MS_NOSUID;
    err = vfs_mount_at(path, m);
    if (err)
        mount_discard(m);
    return err;
}

// mount(source, target, type, flags, data): only file systems on disks have a
// source, and a remount can change MS_NOSUID only.
s32 sys_mount(u32 source, u32 target, u32 type, u32 flags, u32 data)
{
    struct path_arg path;
    if (!is_root())
        return -EPERM;
    if ((flags & MS_MGC_MSK) == MS_MGC_VAL)
        flags &= ~MS_MGC_MSK;
    if (flags & ~MOUNT_FLAGS ||
        (flags & (MS_REMOUNT | MS_RDONLY)) == (MS_REMOUNT | MS_RDONLY))
        return -EINVAL;
    int err = check_options(data);
    if (!err)
        err = path_get(&path, target);
    if (err)
        return err;
    if (flags & MS_REMOUNT) {
        struct vnode *v;
        err = vfs_lookup(NULL, path.text, WALK_FOLLOW, &v);
        if (!err) {
            err = vnode_is_mount_root(v) ? 0 : -EINVAL;
            if (!err)
                WRITE_ONCE(v->mount->nosuid, flags & MS_NOSUID);
            vnode_unref(v);
        }
    } else {
        err = mount_new(source, type, path.text, flags);
    }
    path_put(&path);
    return err;
}

#define MNT_FORCE 1u // for unreachable servers, of which there are none
#define MNT_DETACH 2u

s32 sys_umount2(u32 target, u32 flags)
{
    struct path_arg path;
    if (!is_root())
        return -EPERM;
    if (flags & ~(MNT_FORCE | MNT_DETACH))
        return -EINVAL;
    int err = path_get(&path, target);
    if (err)
        return err;
    err = flags & MNT_DETACH ? vfs_detach(path.text) : vfs_unmount(path.text);
    path_put(&path);
    return err;
}
