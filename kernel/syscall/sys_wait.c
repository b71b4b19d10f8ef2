// System calls that wait for children, and resource usage.

#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/task/task.h"

struct rusage {
    struct timeval32 utime, stime;
    s32 maxrss, ixrss, idrss, isrss, minflt, majflt, nswap, inblock, oublock,
        msgsnd, msgrcv, nsignals, nvcsw, nivcsw;
};
_Static_assert(sizeof(struct rusage) == 72, "struct rusage of the ABI");

static struct timeval32 cycles_to_timeval(u64 cycles)
{
    u64 us = clock_tsc_to_ns(cycles) / NSEC_PER_USEC;
    return (struct timeval32){ (s32)(us / 1000000), (s32)(us % 1000000) };
}

static int rusage_to_user(u32 addr, const struct resource_usage *f)
{
    if (!addr)
        return 0;
    struct rusage r = {
        .utime = cycles_to_timeval(f->user),
        .stime = cycles_to_timeval(f->kernel),
        .maxrss = (s32)(f->peak_pages * (PAGE_SIZE / 1024)),
        .minflt = (s32)f->faults,
        .nvcsw = (s32)f->voluntary,
        .nivcsw = (s32)f->forced,
    };
    return copy_to_user(addr, &r, sizeof(r));
}

static s32 wait_common(s32 pid, u32 status, u32 options, u32 usage)
{
    if (options & ~(WNOHANG | WUNTRACED | WCONTINUED | WALL | WCLONE))
        return -EINVAL;
    if (pid == INT32_MIN) // no group can have this id
        return -ESRCH;
    struct wait_result r;
    enum wait_scope scope = pid == -1 ? WAIT_ANY
                            : pid > 0 ? WAIT_TASK
                                      : WAIT_GROUP;
    u32 group = pid ? (u32)-pid : READ_ONCE(current_task()->pgid);
    int id =
        task_wait(scope, pid > 0 ? (u32)pid : group, options | WEXITED, &r);
    if (id <= 0)
        return id;
    if (status && user_store_u32(status, (u32)r.status))
        return -EFAULT;
    if (rusage_to_user(usage, &r.used))
        return -EFAULT;
    return id;
}

s32 sys_wait4(u32 id, u32 status, u32 options, u32 usage)
{
    return wait_common((s32)id, status, options, usage);
}

#define P_ALL 0
#define P_PID 1
#define P_PGID 2

s32 sys_waitid(u32 kind, u32 id, u32 siginfo, u32 options, u32 usage)
{
    static const enum wait_scope scope[] = {
        [P_ALL] = WAIT_ANY, [P_PID] = WAIT_TASK, [P_PGID] = WAIT_GROUP
    };
    if (kind > P_PGID || (kind == P_PID && !id) ||
        (kind != P_ALL && (s32)id < 0))
        return -EINVAL;
    if (!(options & (WEXITED | WUNTRACED | WCONTINUED)) ||
        options & ~(WNOHANG | WUNTRACED | WEXITED | WCONTINUED | WNOWAIT |
                    WALL | WCLONE))
        return -EINVAL;
    struct wait_result r;
    if (kind == P_PGID && !id)
        id = READ_ONCE(current_task()->pgid);
    int found = task_wait(scope[kind], id, options, &r);
    if (found < 0)
        return found;
    u32 info[32] = { 0 };
    if (found) {
        bool exited = r.code == 1;
        info[0] = SIGCHLD;
        info[2] = (u32)r.code;
        info[3] = r.id;
        info[5] = exited        ? (u32)r.status >> 8 & 0xff
                  : r.code == 5 ? (u32)r.status >> 8 & 0xff
                  : r.code == 6 ? SIGCONT
                                : (u32)r.status & 0x7f;
    }
    if (siginfo && copy_to_user(siginfo, info, sizeof(info)))
        return -EFAULT;
    return rusage_to_user(usage, &r.used);
}

#define RUSAGE_SELF 0u
#define RUSAGE_CHILDREN (-1u)
#define RUSAGE_THREAD 1u

s32 sys_getrusage(u32 who, u32 usage)
{
    if (who != RUSAGE_SELF && who != RUSAGE_CHILDREN && who != RUSAGE_THREAD)
        return -EINVAL;
    struct task *t = current_task();
    struct resource_usage whole, own;
    u32 flags = spin_lock_irq(&tasks_lock);
    if (who == RUSAGE_CHILDREN)
        whole = t->children_usage;
    else
        task_usage_locked(t, &whole);
    spin_unlock_irq(&tasks_lock, flags);
    if (who == RUSAGE_THREAD) { // memory is counted per task
        thread_usage(current, &own);
        own.peak_pages = whole.peak_pages;
        whole = own;
    }
    return usage ? rusage_to_user(usage, &whole) : -EFAULT;
}
