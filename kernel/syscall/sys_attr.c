// Calls that change a file's attributes: mode, owner, times.
#include "kernel/syscall/at_path.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/task/task.h"

// The attributes that a call changes. `now`: sets both times to now, which
// anyone with write permission may do.
struct change {
    bool mode, owner, atime, mtime, now;
    u32 mode_bits, uid, gid;
    struct timespec_k at, mt;
};

#define OWNER_UNCHANGED (~0u)

// An owner may give a file to the groups of which the owner is a member.
static bool may_give(const struct vnode *v, const struct change *c)
{
    u32 gid = READ_ONCE(v->gid);
    if (c->uid != OWNER_UNCHANGED && c->uid != READ_ONCE(v->uid))
        return false;
    return c->gid == OWNER_UNCHANGED || c->gid == gid || is_in_group(c->gid);
}

static int check(const struct vnode *v, const struct change *c)
{
    if (is_root())
        return 0;
    bool owner = owns(READ_ONCE(v->uid));
    if (c->now && !owner)
        return vnode_may(v, MAY_W);
    if (c->owner && c->uid == OWNER_UNCHANGED && c->gid == OWNER_UNCHANGED)
        return 0;
    return owner && (!c->owner || may_give(v, c)) ? 0 : -EPERM;
}

// Drops S_ISGID for a group of which the owner is not a member.
static u32 mode_by_owner(const struct vnode *v, u32 mode)
{
    bool may = !(mode & S_ISGID) || is_root() || is_in_group(READ_ONCE(v->gid));
    return may ? mode : mode & ~S_ISGID;
}

// Permission is checked with the lock held: otherwise, if the file got another
// owner in between, the former owner could still change its mode.
static int apply(struct vnode *v, const struct change *c)
{
    struct timespec_k now = vfs_now();
    spin_lock(&v->lock);
    int err = check(v, c);
    if (err) {
        spin_unlock(&v->lock);
        return err;
    }
    u32 bits = c->mode ? mode_by_owner(v, c->mode_bits & 07777) : 0;
    if (c->mode)
        WRITE_ONCE(v->mode, (v->mode & S_IFMT) | bits);
    if (c->owner)
        vnode_drop_set_id(v);
    if (c->owner && c->uid != OWNER_UNCHANGED)
        WRITE_ONCE(v->uid, c->uid);
    if (c->owner && c->gid != OWNER_UNCHANGED)
        WRITE_ONCE(v->gid, c->gid);
    if (c->atime)
        v->atime = c->at;
    if (c->mtime)
        v->mtime = c->mt;
    v->ctime = now;
    spin_unlock(&v->lock);
    return 0;
}

static s32 change_path(u32 dirfd, u32 path, u32 flags, const struct change *c)
{
    struct vnode *v;
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    int err = at_path_lookup(dirfd, path, flags, &v);
    if (err)
        return err;
    err = apply(v, c);
    vnode_unref(v);
    return err;
}

static s32 change_fd(u32 fd, const struct change *c)
{
    struct fd_ref r;
    int err = fd_borrow(fd, &r);
    if (err)
        return err;
    if (READ_ONCE(r.file->flags) & O_PATH)
        err = -EBADF;
    else if (r.file->vnode)
        err = apply(r.file->vnode, c);
    fd_return(&r);
    return err;
}

static struct change new_mode(u32 mode)
{
    return (struct change){ .mode = true, .mode_bits = mode };
}

s32 sys_chmod(u32 path, u32 mode)
{
    struct change change = new_mode(mode);
    return change_path(AT_FDCWD, path, 0, &change);
}

s32 sys_fchmod(u32 fd, u32 mode)
{
    struct change change = new_mode(mode);
    return change_fd(fd, &change);
}

s32 sys_fchmodat(u32 dir, u32 path, u32 mode)
{
    struct change change = new_mode(mode);
    return change_path(dir, path, 0, &change);
}

static struct change new_owner(u32 uid, u32 gid)
{
    return (struct change){ .owner = true, .uid = uid, .gid = gid };
}

// 16-bit user ids: -1 becomes OWNER_UNCHANGED.
static u32 wide_id(u32 id)
{
    return (u16)id == 0xffff ? OWNER_UNCHANGED : (u16)id;
}

s32 sys_chown(u32 path, u32 uid, u32 gid)
{
    struct change change = new_owner(wide_id(uid), wide_id(gid));
    return change_path(AT_FDCWD, path, 0, &change);
}

s32 sys_chown32(u32 path, u32 uid, u32 gid)
{
    struct change change = new_owner(uid, gid);
    return change_path(AT_FDCWD, path, 0, &change);
}

s32 sys_lchown32(u32 path, u32 uid, u32 gid)
{
    struct change change = new_owner(uid, gid);
    return change_path(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &change);
}

s32 sys_fchown32(u32 fd, u32 uid, u32 gid)
{
    struct change change = new_owner(uid, gid);
    return change_fd(fd, &change);
}

s32 sys_fchownat(u32 dir, u32 path, u32 uid, u32 gid, u32 flags)
{
    struct change change = new_owner(uid, gid);
    return change_path(dir, path, flags, &change);
}

s32 sys_umask(u32 mode)
{
    struct task *t = current_task();
    return (s32)__atomic_exchange_n(&t->umask, mode & 0777, __ATOMIC_RELAXED);
}

// --- times ------------------------------------------------------------------

#define UTIME_NOW 0x3fffffff
#define UTIME_OMIT 0x3ffffffe

static struct change times_now(void)
{
    struct timespec_k now = vfs_now();
    return (struct change){
        .atime = true, .mtime = true, .now = true, .at = now, .mt = now
    };
}

static int set_time(const struct timespec64 *t, bool *set,
                    struct timespec_k *value)
{
    *set = t->nsec != UTIME_OMIT;
    if (t->nsec == UTIME_NOW)
        *value = vfs_now();
    else if (t->nsec == UTIME_OMIT)
        return 0;
    else if (t->nsec < 0 || t->nsec >= (s32)NSEC_PER_SEC)
        return -EINVAL;
    else
        *value = (struct timespec_k){ .sec = t->sec, .nsec = (u32)t->nsec };
    return 0;
}

static int times_from_user(struct change *c, u32 addr, bool wide)
{
    struct timespec64 t[2];
    if (wide) {
        if (copy_from_user(t, addr, sizeof(t)))
            return -EFAULT;
    } else {
        struct timespec32 narrow[2];
        if (copy_from_user(narrow, addr, sizeof(narrow)))
            return -EFAULT;
        for (u32 i = 0; i < 2; i++)
            t[i] = (struct timespec64){ .sec = narrow[i].sec,
                                        .nsec = narrow[i].nsec };
    }
    *c = (struct change){ .atime = false };
    c->now = t[0].nsec == UTIME_NOW && t[1].nsec == UTIME_NOW;
    int err = set_time(&t[0], &c->atime, &c->at);
    return err ? err : set_time(&t[1], &c->mtime, &c->mt);
}

static s32 set_times(u32 dirfd, u32 path, u32 addr, u32 flags, bool wide)
{
    struct change change = times_now();
    int err = addr ? times_from_user(&change, addr, wide) : 0;
    if (err)
        return err;
    if (!change.atime && !change.mtime)
        return 0;
    if (!path)
        return change_fd(dirfd, &change);
    return change_path(dirfd, path, flags, &change);
}

TIME_TWINS(utimensat, utimensat_time64,
           (u32 dir, u32 path, u32 times, u32 flags),
           set_times(dir, path, times, flags, wide))

static s32 set_timevals(u32 dirfd, u32 path, u32 addr)
{
    struct change change = times_now();
    struct timeval32 t[2];
    if (addr) {
        if (copy_from_user(t, addr, sizeof(t)))
            return -EFAULT;
        for (u32 i = 0; i < 2; i++) {
            if (t[i].usec < 0 || t[i].usec >= 1000000)
                return -EINVAL;
        }
        change.now = false;
        change.at.sec = t[0].sec;
        change.at.nsec = (u32)t[0].usec * 1000;
        change.mt.sec = t[1].sec;
        change.mt.nsec = (u32)t[1].usec * 1000;
    }
    if (!path)
        return change_fd(dirfd, &change);
    return change_path(dirfd, path, 0, &change);
}

s32 sys_utimes(u32 path, u32 times)
{
    return path ? set_timevals(AT_FDCWD, path, times) : -EFAULT;
}

s32 sys_futimesat(u32 dir, u32 path, u32 times)
{
    return set_timevals(dir, path, times);
}

s32 sys_utime(u32 path, u32 times)
{
    struct change change = times_now();
    s32 t[2];
    if (times) {
        if (copy_from_user(t, times, sizeof(t)))
            return -EFAULT;
        change.now = false;
        change.at = (struct timespec_k){ .sec = t[0] };
        change.mt = (struct timespec_k){ .sec = t[1] };
    }
    return change_path(AT_FDCWD, path, 0, &change);
}
