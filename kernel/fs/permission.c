// File permissions: modes and owners, as in POSIX.
//
// mode, uid and gid are separate words with marked accesses: a check that races
// with a change of one of them takes effect just before or after the change.

#include "kernel/base/errno.h"
#include "kernel/fs/path.h"
#include "kernel/task/task.h"

#define S_ISVTX 01000u
#define S_IWOTH 02u
#define S_IXANY 0111u

static bool allows(const struct vnode *v, u32 wanted, u32 uid, u32 gid,
                   bool real)
{
    u32 mode = READ_ONCE(v->mode), owner = READ_ONCE(v->gid);
    if (!uid)
        return !(wanted & MAY_X) || vnode_is_dir(v) || mode & S_IXANY;
    if (uid == READ_ONCE(v->uid))
        mode >>= 6;
    else if (gid == owner ||
             (real ? is_in_more_groups(owner) : is_in_group(owner)))
        mode >>= 3;
    return !(wanted & ~mode);
}

int vnode_may(const struct vnode *v, u32 wanted)
{
    const struct task *t = current_task();
    bool may = allows(v, wanted, READ_ONCE(t->euid), READ_ONCE(t->egid), false);
    return may ? 0 : -EACCES;
}

int vnode_may_really(const struct vnode *v, u32 wanted)
{
    const struct task *t = current_task();
    bool may = allows(v, wanted, READ_ONCE(t->uid), READ_ONCE(t->gid), true);
    return may ? 0 : -EACCES;
}

int vnode_may_open(const struct vnode *v, u32 flags)
{
    static const u32 wanted[] = { [O_RDONLY] = MAY_R,
                                  [O_WRONLY] = MAY_W,
                                  [O_RDWR] = MAY_R | MAY_W,
                                  [O_ACCMODE] = MAY_R | MAY_W };
    if (flags & O_PATH)
        return 0;
    return vnode_may(v,
                     wanted[flags & O_ACCMODE] | (flags & O_TRUNC ? MAY_W : 0));
}

int vnode_may_change(const struct vnode *dir)
{
    mutex_assert_held(&namespace_lock);
    return vnode_may(dir, MAY_W | MAY_X);
}

// In a sticky directory (/tmp) only the owners may remove names.
int vnode_may_remove(const struct vnode *dir, const struct vnode *v)
{
    int err = vnode_may_change(dir);
    if (err)
        return err;
    if (!(READ_ONCE(dir->mode) & S_ISVTX) || owns(READ_ONCE(v->uid)) ||
        owns(READ_ONCE(dir->uid)))
        return 0;
    return -EPERM;
}

// Linux's protected_hardlinks: a user links its own files, and others' only if
// it may read and write them and they give no rights by set-id bits. A link
// keeps a file that its owner removes, e.g. a faulty set-user-id program.
int vnode_may_link(const struct vnode *v)
{
    u32 mode = READ_ONCE(v->mode);
    if (owns(READ_ONCE(v->uid)))
        return 0;
    bool safe = vnode_type(v) == S_IFREG && !(mode & S_ISUID) &&
                (mode & (S_ISGID | S_IXGRP)) != (S_ISGID | S_IXGRP);
    return safe && !vnode_may(v, MAY_R | MAY_W) ? 0 : -EPERM;
}

// Linux's protected_symlinks: in a sticky directory that everybody may write, a
// symlink at the end of a path is followed by its owner, and by all if the
// directory's owner has made it. A program, root's too, that writes a file of a
// known name in /tmp is so not led to another file.
int vnode_may_follow(const struct vnode *dir, const struct vnode *symlink)
{
    u32 mode = READ_ONCE(dir->mode), owner = READ_ONCE(symlink->uid);
    if ((mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) ||
        owner == READ_ONCE(current_task()->euid) ||
        owner == READ_ONCE(dir->uid))
        return 0;
    return -EACCES;
}

// Before the vnode can be found: under namespace_lock.
void vnode_set_creator(const struct vnode *dir, struct vnode *v)
{
    mutex_assert_held(&namespace_lock);
    const struct task *t = current_task();
    bool by_dir = READ_ONCE(dir->mode) & S_ISGID;
    u32 gid = by_dir ? READ_ONCE(dir->gid) : READ_ONCE(t->egid);
    WRITE_ONCE(v->uid, READ_ONCE(t->euid));
    WRITE_ONCE(v->gid, gid);
    if (vnode_is_dir(v) && by_dir)
        WRITE_ONCE(v->mode, v->mode | S_ISGID);
    else if ((v->mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
             !is_root() && !is_in_group(gid))
        WRITE_ONCE(v->mode, v->mode & ~S_ISGID);
}
