// System calls on who a task is: ids, parents, groups, sessions, users.

#include "kernel/sched/task.h"
#include "kernel/syscall/syscall.h"

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

// --- users: recorded, not enforced (everybody is root here)
// -------------------

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

// ~0 leaves an id as it is.
static s32 set_ids(u32 *real, u32 *effective, u32 r, u32 e)
{
    if (r != ~0u)
        WRITE_ONCE(*real, r);
    if (e != ~0u)
        WRITE_ONCE(*effective, e);
    return 0;
}

SYSCALL_HANDLER(setuid32)
{
    struct task *t = current_task();
    return set_ids(&t->uid, &t->euid, a, a);
}
SYSCALL_HANDLER(setgid32)
{
    struct task *t = current_task();
    return set_ids(&t->gid, &t->egid, a, a);
}
SYSCALL_HANDLER(setreuid32)
{
    struct task *t = current_task();
    return set_ids(&t->uid, &t->euid, a, b);
}
SYSCALL_HANDLER(setregid32)
{
    struct task *t = current_task();
    return set_ids(&t->gid, &t->egid, a, b);
}
SYSCALL_HANDLER(setresuid32)
{
    return sys_setreuid32(a, b, 0, 0, 0, 0);
}
SYSCALL_HANDLER(setresgid32)
{
    return sys_setregid32(a, b, 0, 0, 0, 0);
}

static s32 three_ids(u32 a, u32 b, u32 c, u32 real, u32 effective)
{
    if (user_store_u32(a, real) || user_store_u32(b, effective) ||
        user_store_u32(c, effective))
        return -EFAULT;
    return 0;
}
SYSCALL_HANDLER(getresuid32)
{
    return three_ids(a, b, c, READ_ONCE(current_task()->uid),
                     READ_ONCE(current_task()->euid));
}
SYSCALL_HANDLER(getresgid32)
{
    return three_ids(a, b, c, READ_ONCE(current_task()->gid),
                     READ_ONCE(current_task()->egid));
}

// Root is in no further groups.
SYSCALL_HANDLER(getgroups32)
{
    return (s32)a < 0 ? -EINVAL : 0;
}
SYSCALL_HANDLER(setgroups32)
{
    return a > 65536 ? -EINVAL : 0;
}
