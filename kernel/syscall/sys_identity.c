// System calls on a task's identity: ids, parents, groups, sessions, users.

#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"
#include "lib/string.h"

s32 sys_getpid(void)
{
    return (s32)current_task()->id;
}

s32 sys_gettid(void)
{
    return (s32)current->tid;
}

s32 sys_getppid(void)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    u32 id = current_task()->parent->id;
    spin_unlock_irq(&tasks_lock, flags);
    return (s32)id;
}

struct task *task_find_or_self(u32 id)
{
    struct task *t = id ? task_find(id) : current_task();
    if (t && !id)
        task_ref(t);
    return t;
}

s32 sys_getpgid(u32 task)
{
    struct task *t = task_find_or_self(task);
    if (!t)
        return -ESRCH;
    s32 id = (s32)READ_ONCE(t->pgid);
    task_unref(t);
    return id;
}

s32 sys_getpgrp(void)
{
    return (s32)READ_ONCE(current_task()->pgid);
}

s32 sys_getsid(u32 task)
{
    struct task *t = task_find_or_self(task);
    if (!t)
        return -ESRCH;
    s32 id = (s32)READ_ONCE(t->sid);
    task_unref(t);
    return id;
}

struct group_search {
    u32 pgid, sid;
    bool found;
};

static void find_group(struct task *t, void *arg)
{
    struct group_search *s = arg;
    if (t->pgid == s->pgid && t->sid == s->sid)
        s->found = true;
}

static int set_group_locked(struct task *t, u32 pgid)
{
    struct task *self = current_task();
    if (t != self && t->parent != self)
        return -ESRCH;
    if (t != self && READ_ONCE(t->execed))
        return -EACCES;
    if (t->sid != self->sid || t->sid == t->id)
        return -EPERM;
    struct group_search s = { pgid, t->sid, pgid == t->id };
    if (!s.found)
        task_for_each_locked(find_group, &s);
    if (!s.found)
        return -EPERM;
    WRITE_ONCE(t->pgid, pgid);
    return 0;
}

s32 sys_setpgid(u32 task, u32 group)
{
    if ((s32)group < 0)
        return -EINVAL;
    struct task *t = task_find_or_self(task);
    if (!t)
        return -ESRCH;
    u32 flags = spin_lock_irq(&tasks_lock);
    int err = set_group_locked(t, group ? group : t->id);
    spin_unlock_irq(&tasks_lock, flags);
    task_unref(t);
    return err;
}

static void find_leader(struct task *t, void *arg)
{
    struct group_search *s = arg;
    if (t->pgid == s->pgid)
        s->found = true;
}

s32 sys_setsid(void)
{
    struct task *t = current_task();
    struct group_search s = { .pgid = t->id };
    u32 flags = spin_lock_irq(&tasks_lock);
    task_for_each_locked(find_leader, &s);
    if (!s.found) {
        WRITE_ONCE(t->sid, t->id);
        WRITE_ONCE(t->pgid, t->id);
        WRITE_ONCE(t->ctty, NULL);
    }
    spin_unlock_irq(&tasks_lock, flags);
    return s.found ? -EPERM : (s32)t->id;
}

// --- users and groups -------------------------------------------------------

s32 sys_getuid32(void)
{
    return (s32)READ_ONCE(current_task()->uid);
}

s32 sys_getgid32(void)
{
    return (s32)READ_ONCE(current_task()->gid);
}

s32 sys_geteuid32(void)
{
    return (s32)READ_ONCE(current_task()->euid);
}

s32 sys_getegid32(void)
{
    return (s32)READ_ONCE(current_task()->egid);
}

s32 sys_getuid(void)
{
    return (s32)(u16)READ_ONCE(current_task()->uid);
}

s32 sys_getgid(void)
{
    return (s32)(u16)READ_ONCE(current_task()->gid);
}

s32 sys_geteuid(void)
{
    return (s32)(u16)READ_ONCE(current_task()->euid);
}

s32 sys_getegid(void)
{
    return (s32)(u16)READ_ONCE(current_task()->egid);
}

// setuid, setgid: root sets all three ids for good, other users the effective
// one.
static struct id_triple all_or_effective(u32 id)
{
    if (is_root())
        return (struct id_triple){ id, id, id };
    return (struct id_triple){ ID_UNCHANGED, id, ID_UNCHANGED };
}

s32 sys_setuid32(u32 uid)
{
    struct task *t = current_task();
    if (uid == ID_UNCHANGED)
        return -EINVAL;
    // As in POSIX, the real or the saved id, but not the effective one.
    if (!is_root() && uid != READ_ONCE(t->uid) && uid != READ_ONCE(t->suid))
        return -EPERM;
    return credentials_set_users(all_or_effective(uid));
}

s32 sys_setgid32(u32 gid)
{
    struct task *t = current_task();
    if (gid == ID_UNCHANGED)
        return -EINVAL;
    if (!is_root() && gid != READ_ONCE(t->gid) && gid != READ_ONCE(t->sgid))
        return -EPERM;
    return credentials_set_groups(all_or_effective(gid));
}

// setreuid, setregid: the saved id becomes the effective one if the real id is
// set, or if the effective id is set to another than the old real one. 0 or
// -EPERM.
static int set_saved_id(struct id_triple *ids, u32 real, u32 effective,
                        u32 saved)
{
    bool may = is_root() || ids->real == ID_UNCHANGED || ids->real == real ||
               ids->real == effective;
    if (!may || (!is_root() && ids->effective != ID_UNCHANGED &&
                 ids->effective != real && ids->effective != effective &&
                 ids->effective != saved))
        return -EPERM;
    if (ids->real != ID_UNCHANGED ||
        (ids->effective != ID_UNCHANGED && ids->effective != real))
        ids->saved =
            ids->effective == ID_UNCHANGED ? effective : ids->effective;
    return 0;
}

s32 sys_setreuid32(u32 uid, u32 euid)
{
    struct task *t = current_task();
    struct id_triple ids = { uid, euid, ID_UNCHANGED };
    int err = set_saved_id(&ids, READ_ONCE(t->uid), READ_ONCE(t->euid),
                           READ_ONCE(t->suid));
    return err ? err : credentials_set_users(ids);
}

s32 sys_setregid32(u32 gid, u32 egid)
{
    struct task *t = current_task();
    struct id_triple ids = { gid, egid, ID_UNCHANGED };
    int err = set_saved_id(&ids, READ_ONCE(t->gid), READ_ONCE(t->egid),
                           READ_ONCE(t->sgid));
    return err ? err : credentials_set_groups(ids);
}

s32 sys_setresuid32(u32 uid, u32 euid, u32 suid)
{
    return credentials_set_users((struct id_triple){ uid, euid, suid });
}

s32 sys_setresgid32(u32 gid, u32 egid, u32 sgid)
{
    return credentials_set_groups((struct id_triple){ gid, egid, sgid });
}

static s32 three_ids(u32 to[3], u32 real, u32 effective, u32 saved)
{
    if (user_store_u32(to[0], real) || user_store_u32(to[1], effective) ||
        user_store_u32(to[2], saved))
        return -EFAULT;
    return 0;
}

s32 sys_getresuid32(u32 uid, u32 euid, u32 suid)
{
    struct task *t = current_task();
    return three_ids((u32[]){ uid, euid, suid }, READ_ONCE(t->uid),
                     READ_ONCE(t->euid), READ_ONCE(t->suid));
}

s32 sys_getresgid32(u32 gid, u32 egid, u32 sgid)
{
    struct task *t = current_task();
    return three_ids((u32[]){ gid, egid, sgid }, READ_ONCE(t->gid),
                     READ_ONCE(t->egid), READ_ONCE(t->sgid));
}

s32 sys_getgroups32(u32 size, u32 list)
{
    struct task *t = current_task();
    u32 groups[GROUPS_MAX];
    if ((s32)size < 0)
        return -EINVAL;
    u32 flags = spin_lock_irq(&t->lock);
    u32 count = t->group_count;
    memcpy(groups, t->groups, count * sizeof(*groups));
    spin_unlock_irq(&t->lock, flags);
    if (size && size < count)
        return -EINVAL;
    if (size && copy_to_user(list, groups, count * sizeof(*groups)))
        return -EFAULT;
    return (s32)count;
}

s32 sys_setgroups32(u32 count, u32 list)
{
    u32 groups[GROUPS_MAX];
    if (!is_root())
        return -EPERM;
    if (count > GROUPS_MAX)
        return -EINVAL;
    if (copy_from_user(groups, list, count * sizeof(*groups)))
        return -EFAULT;
    return credentials_set_more_groups(groups, count);
}

// --- personality ------------------------------------------------------------

#define PERSONALITY_ASK (~0u)
#define PER_LINUX 0u
#define PER_LINUX32 8u // already so on a 32-bit machine

s32 sys_personality(u32 persona)
{
    struct task *t = current_task();
    u32 now = READ_ONCE(t->personality), domain = persona & ~ADDR_NO_RANDOMIZE;
    if (persona == PERSONALITY_ASK)
        return (s32)now;
    if (domain != PER_LINUX && domain != PER_LINUX32)
        return -EINVAL;
    WRITE_ONCE(t->personality, persona);
    return (s32)now;
}
