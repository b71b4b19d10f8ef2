// System calls on limits.

#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"

static struct limit_pair limits_of(struct task *t, u32 which)
{
    return (struct limit_pair){ READ_ONCE(t->limits[which].soft),
                                READ_ONCE(t->limits[which].hard) };
}

s32 sys_ugetrlimit(u32 resource, u32 limit)
{
    if (resource >= LIMITS)
        return -EINVAL;
    struct limit_pair pair = limits_of(current_task(), resource);
    return copy_to_user(limit, &pair, sizeof(pair));
}

// The old call has no limit above INT_MAX.
s32 sys_getrlimit(u32 resource, u32 limit)
{
    if (resource >= LIMITS)
        return -EINVAL;
    struct limit_pair pair = limits_of(current_task(), resource);
    pair.soft = MIN(pair.soft, (u32)INT32_MAX);
    pair.hard = MIN(pair.hard, (u32)INT32_MAX);
    return copy_to_user(limit, &pair, sizeof(pair));
}

s32 sys_setrlimit(u32 resource, u32 limit)
{
    struct limit_pair pair;
    if (resource >= LIMITS)
        return -EINVAL;
    if (copy_from_user(&pair, limit, sizeof(pair)))
        return -EFAULT;
    return limits_set(current_task(), resource, pair);
}

static u64 wide(u32 limit)
{
    return limit == LIMIT_NONE ? ~0ull : limit;
}

// All user and group ids must match (prlimit(2)).
static bool may_limit(const struct task *t)
{
    const struct task *self = current_task();
    u32 uid = READ_ONCE(self->uid), gid = READ_ONCE(self->gid);
    return t == self || is_root() ||
           (uid == READ_ONCE(t->uid) && uid == READ_ONCE(t->euid) &&
            uid == READ_ONCE(t->suid) && gid == READ_ONCE(t->gid) &&
            gid == READ_ONCE(t->egid) && gid == READ_ONCE(t->sgid));
}

s32 sys_prlimit64(u32 id, u32 resource, u32 new_limit, u32 old_limit)
{
    u64 new[2];
    if (resource >= LIMITS)
        return -EINVAL;
    if (new_limit && copy_from_user(new, new_limit, sizeof(new)))
        return -EFAULT;
    struct task *t = task_find_or_self(id);
    if (!t)
        return -ESRCH;
    if (!may_limit(t)) {
        task_unref(t);
        return -EPERM;
    }
    struct limit_pair pair = limits_of(t, resource);
    u64 old[2] = { wide(pair.soft), wide(pair.hard) };
    int err = 0;
    if (new_limit) {
        pair.soft = (u32)MIN(new[0], (u64)LIMIT_NONE);
        pair.hard = (u32)MIN(new[1], (u64)LIMIT_NONE);
        err = limits_set(t, resource, pair);
    }
    task_unref(t);
    if (!err && old_limit && copy_to_user(old_limit, old, sizeof(old)))
        err = -EFAULT;
    return err;
}
