// Calls that report files' attributes: the stat family, statfs, access.
#include "kernel/fs/mount.h"
#include "kernel/syscall/at_path.h"
#include "kernel/syscall/syscall.h"
#include "lib/string.h"

#define BLOCK_SIZE 4096u
#define SECTOR_SIZE 512u

// The attributes, before they are converted to one of the layouts.
struct attributes {
    u64 ino, size, blocks;
    u32 dev, rdev, mode, nlink, uid, gid;
    struct timespec_k atime, mtime, ctime;
};

// In the user's device numbers the minor's upper bits are at the top.
static u32 device_to_user(u32 rdev)
{
    return (rdev & 0xffff) | (rdev & ~0xffffu) << 12;
}

static void attributes_of(struct vnode *v, struct attributes *a)
{
    spin_lock(&v->lock);
    *a = (struct attributes){
        .ino = v->ino,
        .size = v->size,
        .blocks = (u64)v->pages * (PAGE_SIZE / SECTOR_SIZE),
        .dev = v->mount ? v->mount->dev : 0,
        .rdev = device_to_user(v->rdev),
        .mode = v->mode,
        .nlink = READ_ONCE(v->nlink), // guarded by namespace_lock
        .uid = v->uid,
        .gid = v->gid,
        .atime = v->atime,
        .mtime = v->mtime,
        .ctime = v->ctime,
    };
    spin_unlock(&v->lock);
}

// A file without a vnode: a socket, a pipe, or a file that is used like one.
static void attributes_of_pipe(const struct file *f, struct attributes *a)
{
    *a = (struct attributes){
        .ino = file_number(f),
        .mode = f->ops->socket ? S_IFSOCK | 0777 : S_IFIFO | 0600,
        .nlink = 1,
    };
}

static int attributes_of_fd(u32 fd, struct attributes *a)
{
    struct fd_ref r;
    int err = fd_borrow(fd, &r);
    if (err)
        return err;
    if (r.file->vnode)
        attributes_of(r.file->vnode, a);
    else
        attributes_of_pipe(r.file, a);
    fd_return(&r);
    return 0;
}

static int attributes_of_path(u32 dirfd, u32 path, u32 flags,
                              struct attributes *a)
{
    struct vnode *v;
    int err = at_path_lookup(dirfd, path, flags, &v);
    if (err == -EBADF && (flags & AT_EMPTY_PATH))
        return attributes_of_fd(dirfd, a); // a pipe's descriptor
    if (err)
        return err;
    attributes_of(v, a);
    vnode_unref(v);
    return 0;
}

// --- stat64 -----------------------------------------------------------------

struct stat64 { // Linux/i386's, 96 bytes
    u64 dev;
    u32 pad0, ino32, mode, nlink, uid, gid;
    u64 rdev;
    u32 pad1;
    s64 size;
    u32 blksize;
    u64 blocks;
    u32 atime, atime_nsec, mtime, mtime_nsec, ctime, ctime_nsec;
    u64 ino;
} PACKED;
_Static_assert(sizeof(struct stat64) == 96, "stat64's layout");
_Static_assert(offsetof(struct stat64, size) == 44 &&
                   offsetof(struct stat64, ino) == 88,
               "stat64's layout");

static s32 put_stat64(u32 addr, const struct attributes *a)
{
    struct stat64 s = {
        .dev = a->dev,
        .ino32 = (u32)a->ino,
        .mode = a->mode,
        .nlink = a->nlink,
        .uid = a->uid,
        .gid = a->gid,
        .rdev = a->rdev,
        .size = (s64)a->size,
        .blksize = BLOCK_SIZE,
        .blocks = a->blocks,
        .atime = (u32)a->atime.sec,
        .atime_nsec = a->atime.nsec,
        .mtime = (u32)a->mtime.sec,
        .mtime_nsec = a->mtime.nsec,
        .ctime = (u32)a->ctime.sec,
        .ctime_nsec = a->ctime.nsec,
        .ino = a->ino,
    };
    return copy_to_user(addr, &s, sizeof(s));
}

static s32 stat_path(u32 dirfd, u32 path, u32 flags, u32 addr)
{
    struct attributes a;
    int err = attributes_of_path(dirfd, path, flags, &a);
    return err ? err : put_stat64(addr, &a);
}

s32 sys_stat64(u32 path, u32 buffer)
{
    return stat_path(AT_FDCWD, path, 0, buffer);
}

s32 sys_lstat64(u32 path, u32 buffer)
{
    return stat_path(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, buffer);
}

s32 sys_fstat64(u32 fd, u32 buffer)
{
    struct attributes attributes;
    int err = attributes_of_fd(fd, &attributes);
    return err ? err : put_stat64(buffer, &attributes);
}

s32 sys_fstatat64(u32 dir, u32 path, u32 buffer, u32 flags)
{
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT))
        return -EINVAL;
    return stat_path(dir, path, flags, buffer);
}

// --- statx ------------------------------------------------------------------

struct statx_time {
    s64 sec;
    u32 nsec;
    s32 pad;
};
struct statx { // 256 bytes
    u32 mask, blksize;
    u64 attributes;
    u32 nlink, uid, gid;
    u16 mode, pad0;
    u64 ino, size, blocks, attributes_mask;
    struct statx_time atime, btime, ctime, mtime;
    u32 rdev_major, rdev_minor, dev_major, dev_minor;
    u64 spare[14];
} PACKED;
_Static_assert(sizeof(struct statx) == 256, "statx's layout");
_Static_assert(offsetof(struct statx, atime) == 64 &&
                   offsetof(struct statx, rdev_major) == 128,
               "statx's layout");

#define STATX_BASIC_STATS 0x7ffu
#define STATX_RESERVED 0x80000000u
#define AT_STATX_SYNC_TYPE 0x6000u

static struct statx_time statx_time_of(struct timespec_k t)
{
    return (struct statx_time){ .sec = t.sec, .nsec = t.nsec };
}

s32 sys_statx(u32 dir, u32 path, u32 flags, u32 mask, u32 buffer)
{
    struct attributes from;
    const u32 known = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT |
                      AT_STATX_SYNC_TYPE;
    if ((flags & ~known) ||
        (flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE ||
        (mask & STATX_RESERVED))
        return -EINVAL;
    int err = attributes_of_path(dir, path, flags, &from);
    if (err)
        return err;
    struct statx s = {
        .mask = STATX_BASIC_STATS,
        .blksize = BLOCK_SIZE,
        .nlink = from.nlink,
        .uid = from.uid,
        .gid = from.gid,
        .mode = (u16)from.mode,
        .ino = from.ino,
        .size = from.size,
        .blocks = from.blocks,
        .atime = statx_time_of(from.atime),
        .ctime = statx_time_of(from.ctime),
        .mtime = statx_time_of(from.mtime),
        .rdev_major = from.rdev >> 8 & 0xfff,
        .rdev_minor = (from.rdev & 0xff) | (from.rdev >> 12 & 0xfff00),
        .dev_minor = from.dev,
    };
    return copy_to_user(buffer, &s, sizeof(s));
}

// --- statfs -----------------------------------------------------------------

struct statfs64 { // Linux/i386's, 84 bytes
    u32 type, bsize;
    u64 blocks, bfree, bavail, files, ffree;
    u32 fsid[2], namelen, frsize, flags, spare[4];
} PACKED;
_Static_assert(sizeof(struct statfs64) == 84, "statfs64's layout");

struct statfs32 {
    u32 type, bsize, blocks, bfree, bavail, files, ffree;
    u32 fsid[2], namelen, frsize, flags, spare[4];
};
_Static_assert(sizeof(struct statfs32) == 64, "statfs's layout");

#define TMPFS_MAGIC 0x01021994u
#define PROC_MAGIC 0x9fa0u

static int fill_statfs(struct vnode *v, struct statfs64 *s)
{
    u64 total = 0, free = 0;
    struct mount *m = v->mount;
    if (m && m->statfs) {
        int err = m->statfs(m, &total, &free);
        if (err)
            return err;
    }
    bool proc = m && strcmp(m->type, "proc") == 0;
    *s = (struct statfs64){
        .type = proc ? PROC_MAGIC : TMPFS_MAGIC,
        .bsize = PAGE_SIZE,
        .blocks = total,
        .bfree = free,
        .bavail = free,
        .namelen = NAME_MAX_LEN,
        .frsize = PAGE_SIZE,
    };
    return 0;
}

static s32 put_statfs(struct vnode *v, u32 addr, bool wide)
{
    struct statfs64 s;
    int err = fill_statfs(v, &s);
    if (err)
        return err;
    if (wide)
        return copy_to_user(addr, &s, sizeof(s));
    struct statfs32 narrow = {
        .type = s.type,
        .bsize = s.bsize,
        .blocks = (u32)s.blocks,
        .bfree = (u32)s.bfree,
        .bavail = (u32)s.bavail,
        .namelen = s.namelen,
        .frsize = s.frsize,
    };
    return copy_to_user(addr, &narrow, sizeof(narrow));
}

static s32 statfs_path(u32 path, u32 addr, bool wide)
{
    struct vnode *v;
    int err = at_path_lookup(AT_FDCWD, path, 0, &v);
    if (err)
        return err;
    err = put_statfs(v, addr, wide);
    vnode_unref(v);
    return err;
}

static s32 statfs_fd(u32 fd, u32 addr, bool wide)
{
    struct vnode *v;
    int err = fd_vnode(fd, &v);
    if (err)
        return err;
    err = put_statfs(v, addr, wide);
    vnode_unref(v);
    return err;
}

s32 sys_statfs(u32 path, u32 buffer)
{
    return statfs_path(path, buffer, false);
}

s32 sys_fstatfs(u32 fd, u32 buffer)
{
    return statfs_fd(fd, buffer, false);
}

// Callers may include the padding that other architectures have.
static bool is_statfs64_size(u32 size)
{
    return size == sizeof(struct statfs64) ||
           size == ALIGN_UP(sizeof(struct statfs64), 8);
}

s32 sys_statfs64(u32 path, u32 size, u32 buffer)
{
    return is_statfs64_size(size) ? statfs_path(path, buffer, true) : -EINVAL;
}

s32 sys_fstatfs64(u32 fd, u32 size, u32 buffer)
{
    return is_statfs64_size(size) ? statfs_fd(fd, buffer, true) : -EINVAL;
}

// --- access -----------------------------------------------------------------

#define ACCESS_MODES (MAY_R | MAY_W | MAY_X)

// Checks for the real user, for programs with another user's rights;
// AT_EACCESS: for the effective one.
s32 sys_faccessat2(u32 dir, u32 path, u32 mode, u32 flags)
{
    struct vnode *v;
    if (mode & ~ACCESS_MODES)
        return -EINVAL;
    if (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    int err = at_path_lookup(dir, path, flags, &v);
    if (err)
        return err;
    err = flags & AT_EACCESS ? vnode_may(v, mode) : vnode_may_really(v, mode);
    vnode_unref(v);
    return err;
}
