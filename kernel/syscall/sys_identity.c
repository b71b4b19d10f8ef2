// System calls on who a task is: ids, parents, groups, sessions, users.

#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"
#include "lib/string.h"

SYSCALL_HANDLER(getpid)
{
    return (s32)current_task()->id;
}

SYSCALL_HANDLER(gettid)
{
    return (s32)current->tid;
}

SYSCALL_HANDLER(getppid)
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

SYSCALL_HANDLER(getpgid)
{
    struct task *t = task_find_or_self(a);
    if (!t)
        return -ESRCH;
    s32 id = (s32)READ_ONCE(t->pgid);
    task_unref(t);
    return id;
}

SYSCALL_HANDLER(getpgrp)
{
    return (s32)READ_ONCE(current_task()->pgid);
}

SYSCALL_HANDLER(getsid)
{
    struct task *t = task_find_or_self(a);
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

SYSCALL_HANDLER(setpgid)
{
    if ((s32)b < 0)
        return -EINVAL;
    struct task *t = task_find_or_self(a);
    if (!t)
        return -ESRCH;
    u32 flags = spin_lock_irq(&tasks_lock);
    int err = set_group_locked(t, b ? b : t->id);
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

SYSCALL_HANDLER(setsid)
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

SYSCALL_HANDLER(getuid32)
{
    return (s32)READ_ONCE(current_task()->uid);
}
SYSCALL_HANDLER(getgid32)
{
    return (s32)READ_ONCE(current_task()->gid);
}
SYSCALL_HANDLER(geteuid32)
{
    return (s32)READ_ONCE(current_task()->euid);
}
SYSCALL_HANDLER(getegid32)
{
    return (s32)READ_ONCE(current_task()->egid);
}
SYSCALL_HANDLER(getuid)
{
    return (s32)(u16)READ_ONCE(current_task()->uid);
}
SYSCALL_HANDLER(getgid)
{
    return (s32)(u16)READ_ONCE(current_task()->gid);
}
SYSCALL_HANDLER(geteuid)
{
    return (s32)(u16)READ_ONCE(current_task()->euid);
}
SYSCALL_HANDLER(getegid)
{
    return (s32)(u16)READ_ONCE(current_task()->egid);
}

// setuid, setgid: root gives up all three for good, others take a saved one up.
static struct id_triple all_or_effective(u32 id)
{
    if (is_root())
        return (struct id_triple){ id, id, id };
    return (struct id_triple){ ID_UNCHANGED, id, ID_UNCHANGED };
}

SYSCALL_HANDLER(setuid32)
{
    struct task *t = current_task();
    if (a == ID_UNCHANGED)
        return -EINVAL;
    // Of the three not the effective one, which it may be without a right to.
    if (!is_root() && a != READ_ONCE(t->uid) && a != READ_ONCE(t->suid))
        return -EPERM;
    return credentials_set_users(all_or_effective(a));
}

SYSCALL_HANDLER(setgid32)
{
    struct task *t = current_task();
    if (a == ID_UNCHANGED)
        return -EINVAL;
    if (!is_root() && a != READ_ONCE(t->gid) && a != READ_ONCE(t->sgid))
        return -EPERM;
    return credentials_set_groups(all_or_effective(a));
}

// setreuid, setregid: the saved id follows when the real one is set, or the
// effective one to another than the real one was. 0 or -EPERM.
static int saved_follows(struct id_triple *ids, u32 real, u32 effective,
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

SYSCALL_HANDLER(setreuid32)
{
    struct task *t = current_task();
    struct id_triple ids = { a, b, ID_UNCHANGED };
    int err = saved_follows(&ids, READ_ONCE(t->uid), READ_ONCE(t->euid),
                            READ_ONCE(t->suid));
    return err ? err : credentials_set_users(ids);
}

SYSCALL_HANDLER(setregid32)
{
    struct task *t = current_task();
    struct id_triple ids = { a, b, ID_UNCHANGED };
    int err = saved_follows(&ids, READ_ONCE(t->gid), READ_ONCE(t->egid),
                            READ_ONCE(t->sgid));
    return err ? err : credentials_set_groups(ids);
}

SYSCALL_HANDLER(setresuid32)
{
    return credentials_set_users((struct id_triple){ a, b, c });
}

SYSCALL_HANDLER(setresgid32)
{
    return credentials_set_groups((struct id_triple){ a, b, c });
}

static s32 three_ids(u32 to[3], u32 real, u32 effective, u32 saved)
{
    if (user_store_u32(to[0], real) || user_store_u32(to[1], effective) ||
        user_store_u32(to[2], saved))
        return -EFAULT;
    return 0;
}

SYSCALL_HANDLER(getresuid32)
{
    struct task *t = current_task();
    return three_ids((u32[]){ a, b, c }, READ_ONCE(t->uid), READ_ONCE(t->euid),
                     READ_ONCE(t->suid));
}

SYSCALL_HANDLER(getresgid32)
{
    struct task *t = current_task();
    return three_ids((u32[]){ a, b, c }, READ_ONCE(t->gid), READ_ONCE(t->egid),
                     READ_ONCE(t->sgid));
}

SYSCALL_HANDLER(getgroups32)
{
    struct task *t = current_task();
    u32 groups[GROUPS_MAX];
    if ((s32)a < 0)
        return -EINVAL;
    u32 flags = spin_lock_irq(&t->lock);
    u32 count = t->group_count;
    memcpy(groups, t->groups, count * sizeof(*groups));
    spin_unlock_irq(&t->lock, flags);
    if (a && a < count)
        return -EINVAL;
    if (a && copy_to_user(b, groups, count * sizeof(*groups)))
        return -EFAULT;
    return (s32)count;
}

SYSCALL_HANDLER(setgroups32)
{
    u32 groups[GROUPS_MAX];
    if (!is_root())
        return -EPERM;
    if (a > GROUPS_MAX)
        return -EINVAL;
    if (copy_from_user(groups, b, a * sizeof(*groups)))
        return -EFAULT;
    return credentials_set_more_groups(groups, a);
}

// --- personality ------------------------------------------------------------

#define PERSONALITY_ASK (~0u)
#define PER_LINUX 0u
#define PER_LINUX32 8u // what a 32-bit machine is anyway

SYSCALL_HANDLER(personality)
{
    struct task *t = current_task();
    u32 now = READ_ONCE(t->personality), domain = a & ~ADDR_NO_RANDOMIZE;
    if (a == PERSONALITY_ASK)
        return (s32)now;
    if (domain != PER_LINUX && domain != PER_LINUX32)
        return -EINVAL;
    WRITE_ONCE(t->personality, a);
    return (s32)now;
}
