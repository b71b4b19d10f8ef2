// System calls on limits.

#include "kernel/sched/task.h"
#include "kernel/syscall/syscall.h"

#define RLIMIT_STACK 3
#define RLIMIT_NPROC 6
#define RLIMIT_NOFILE 7
#define RLIMIT_SIGPENDING 11 // of each task and each thread, not of a user
#define RLIMITS 16
#define RLIM32_INFINITY 0xffffffffu

// The limits that are enforced; the others are infinite.
static u32 *limit_of(struct task *t, u32 which)
{
    switch (which) {
    case RLIMIT_STACK:
        return &t->rlimit_stack;
    case RLIMIT_NPROC:
        return &t->rlimit_nproc;
    case RLIMIT_NOFILE:
        return &t->rlimit_nofile;
    case RLIMIT_SIGPENDING:
        return &t->rlimit_sigpending;
    default:
        return NULL;
    }
}

#define STACK_LIMIT_MAX MIB(256)
#define NOFILE_MAX 1024u
#define SIGPENDING_MAX 4096u

static u32 hard_limit(u32 which)
{
    switch (which) {
    case RLIMIT_STACK:
        return STACK_LIMIT_MAX;
    case RLIMIT_NOFILE:
        return NOFILE_MAX;
    case RLIMIT_SIGPENDING:
        return SIGPENDING_MAX;
    default:
        return RLIM32_INFINITY;
    }
}

static int set_limit(struct task *t, u32 which, u64 soft)
{
    u32 *limit = limit_of(t, which);
    if (!limit)
        return 0;
    WRITE_ONCE(*limit, (u32)MIN(soft, (u64)hard_limit(which)));
    return 0;
}

SYSCALL_HANDLER(ugetrlimit)
{
    if (a >= RLIMITS)
        return -EINVAL;
    u32 *limit = limit_of(current_task(), a);
    u32 pair[2] = { limit ? READ_ONCE(*limit) : RLIM32_INFINITY,
                    hard_limit(a) };
    return copy_to_user(b, pair, sizeof(pair));
}

SYSCALL_HANDLER(getrlimit)
{
    return sys_ugetrlimit(a, b, 0, 0, 0, 0);
}

SYSCALL_HANDLER(setrlimit)
{
    u32 pair[2];
    if (a >= RLIMITS)
        return -EINVAL;
    if (copy_from_user(pair, b, sizeof(pair)))
        return -EFAULT;
    if (pair[0] > pair[1])
        return -EINVAL;
    return set_limit(current_task(), a, pair[0]);
}

SYSCALL_HANDLER(prlimit64)
{
    u64 wanted[2];
    if (b >= RLIMITS)
        return -EINVAL;
    if (c && copy_from_user(wanted, c, sizeof(wanted)))
        return -EFAULT;
    if (c && wanted[0] > wanted[1])
        return -EINVAL;
    struct task *t = task_find_or_self(a);
    if (!t)
        return -ESRCH;
    u32 *limit = limit_of(t, b);
    u64 old[2] = { limit ? READ_ONCE(*limit) : ~0ull,
                   hard_limit(b) == RLIM32_INFINITY ? ~0ull : hard_limit(b) };
    int err = c ? set_limit(t, b, wanted[0]) : 0;
    task_unref(t);
    if (!err && d && copy_to_user(d, old, sizeof(old)))
        err = -EFAULT;
    return err;
}
