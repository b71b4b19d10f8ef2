// System calls on limits.

#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"

static struct limit_pair limits_of(struct task *t, u32 which)
{
    return (struct limit_pair){ READ_ONCE(t->limits[which].soft),
                                READ_ONCE(t->limits[which].hard) };
}

SYSCALL_HANDLER(ugetrlimit)
{
    if (a >= LIMITS)
        return -EINVAL;
    struct limit_pair pair = limits_of(current_task(), a);
    return copy_to_user(b, &pair, sizeof(pair));
}

// The old one knows none above INT_MAX.
SYSCALL_HANDLER(getrlimit)
{
    if (a >= LIMITS)
        return -EINVAL;
    struct limit_pair pair = limits_of(current_task(), a);
    pair.soft = MIN(pair.soft, (u32)INT32_MAX);
    pair.hard = MIN(pair.hard, (u32)INT32_MAX);
    return copy_to_user(b, &pair, sizeof(pair));
}

SYSCALL_HANDLER(setrlimit)
{
    struct limit_pair pair;
    if (a >= LIMITS)
        return -EINVAL;
    if (copy_from_user(&pair, b, sizeof(pair)))
        return -EFAULT;
    return limits_set(current_task(), a, pair);
}

static u64 wide(u32 limit)
{
    return limit == LIMIT_NONE ? ~0ull : limit;
}

// Of the same user and group in every respect (prlimit(2)).
static bool may_limit(const struct task *t)
{
    const struct task *self = current_task();
    u32 uid = READ_ONCE(self->uid), gid = READ_ONCE(self->gid);
    return t == self || is_root() ||
           (uid == READ_ONCE(t->uid) && uid == READ_ONCE(t->euid) &&
            uid == READ_ONCE(t->suid) && gid == READ_ONCE(t->gid) &&
            gid == READ_ONCE(t->egid) && gid == READ_ONCE(t->sgid));
}

SYSCALL_HANDLER(prlimit64)
{
    u64 new[2];
    if (b >= LIMITS)
        return -EINVAL;
    if (c && copy_from_user(new, c, sizeof(new)))
        return -EFAULT;
    struct task *t = task_find_or_self(a);
    if (!t)
        return -ESRCH;
    if (!may_limit(t)) {
        task_unref(t);
        return -EPERM;
    }
    struct limit_pair pair = limits_of(t, b);
    u64 old[2] = { wide(pair.soft), wide(pair.hard) };
    int err = 0;
    if (c) {
        pair.soft = (u32)MIN(new[0], (u64)LIMIT_NONE);
        pair.hard = (u32)MIN(new[1], (u64)LIMIT_NONE);
        err = limits_set(t, b, pair);
    }
    task_unref(t);
    if (!err && d && copy_to_user(d, old, sizeof(old)))
        err = -EFAULT;
    return err;
}
