// System calls on tasks and threads.

#include "kernel/mm/heap.h"
#include "kernel/sched/clone.h"
#include "kernel/sched/task.h"
#include "kernel/sched/tls.h"
#include "kernel/sync/futex.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/time/wallclock.h"
#include "lib/string.h"

#define PATH_BYTES 4096u

SYSCALL_HANDLER(exit)
{
    task_exit_thread(WAIT_STATUS_EXITED((int)a));
}

SYSCALL_HANDLER(exit_group)
{
    task_exit(WAIT_STATUS_EXITED((int)a));
}

SYSCALL_HANDLER(fork)
{
    struct clone_args args = { .flags = SIGCHLD };
    return task_clone(syscall_frame(), &args);
}

SYSCALL_HANDLER(vfork)
{
    struct clone_args args = { .flags = SIGCHLD | CLONE_VM | CLONE_VFORK };
    return task_clone(syscall_frame(), &args);
}

SYSCALL_HANDLER(clone)
{
    // i386's order: flags, stack, parent_tid, tls, child_tid (clone(2), NOTES).
    struct clone_args args = { a, b, c, d, e };
    return task_clone(syscall_frame(), &args);
}

SYSCALL_HANDLER(execve)
{
    char *path = kmalloc(PATH_BYTES);
    if (!path)
        return -ENOMEM;
    int err = copy_string_from_user(path, a, PATH_BYTES);
    if (err == 0)
        err = -ENOENT;
    if (err > 0)
        err = task_exec(syscall_frame(), path, b, c);
    kfree(path);
    // The call's result is the new program's eax: arch_exec has set it.
    return err ? err : (s32)syscall_frame()->eax;
}

// --- waiting ----------------------------------------------------------------

struct rusage {
    struct timeval32 utime, stime;
    s32 maxrss, ixrss, idrss, isrss, minflt, majflt, nswap, inblock, oublock,
        msgsnd, msgrcv, nsignals, nvcsw, nivcsw;
};

static struct timeval32 cycles_to_timeval(u64 cycles)
{
    u64 us = clock_tsc_to_ns(cycles) / NSEC_PER_USEC;
    return (struct timeval32){ (s32)(us / 1000000), (s32)(us % 1000000) };
}

static int rusage_to_user(u32 addr, u64 user, u64 kernel, u32 faults)
{
    if (!addr)
        return 0;
    struct rusage r = { .utime = cycles_to_timeval(user),
                        .stime = cycles_to_timeval(kernel),
                        .minflt = (s32)faults };
    return copy_to_user(addr, &r, sizeof(r));
}

static s32 wait_common(s32 pid, u32 status, u32 options, u32 usage)
{
    // WNOHANG, WUNTRACED, WCONTINUED, __WNOTHREAD, __WCLONE, __WALL.
    if (options & ~(WNOHANG | WUNTRACED | WCONTINUED | 0xe0000000))
        return -EINVAL;
    struct wait_result r;
    int id = task_wait(pid, options | WEXITED, &r);
    if (id <= 0)
        return id;
    if (status && user_store_u32(status, (u32)r.status))
        return -EFAULT;
    if (rusage_to_user(usage, r.user, r.kernel, 0))
        return -EFAULT;
    return id;
}

SYSCALL_HANDLER(wait4)
{
    return wait_common((s32)a, b, c, d);
}

SYSCALL_HANDLER(waitpid)
{
    return wait_common((s32)a, b, c, 0);
}

#define P_ALL 0
#define P_PID 1
#define P_PGID 2

SYSCALL_HANDLER(waitid)
{
    s32 pid;
    if (a == P_ALL)
        pid = -1;
    else if (a == P_PID && (s32)b > 0)
        pid = (s32)b;
    else if (a == P_PGID && (s32)b >= 0)
        pid = -(s32)b;
    else
        return -EINVAL;
    if (!(d & (WEXITED | WUNTRACED | WCONTINUED)) ||
        d & ~(WNOHANG | WUNTRACED | WEXITED | WCONTINUED | WNOWAIT))
        return -EINVAL;
    struct wait_result r;
    int id = task_wait(pid, d, &r);
    if (id < 0)
        return id;
    u32 info[32] = { 0 };
    if (id) {
        bool exited = r.code == 1;
        info[0] = SIGCHLD;
        info[2] = (u32)r.code;
        info[3] = r.id;
        info[5] = exited        ? (u32)r.status >> 8 & 0xff
                  : r.code == 5 ? (u32)r.status >> 8 & 0xff
                  : r.code == 6 ? SIGCONT
                                : (u32)r.status & 0x7f;
    }
    if (c && copy_to_user(c, info, sizeof(info)))
        return -EFAULT;
    return rusage_to_user(e, r.user, r.kernel, 0);
}

SYSCALL_HANDLER(getrusage)
{
    struct task *t = current_task();
    u64 user, kernel;
    u32 faults = 0;
    if (a == (u32)-1) { // RUSAGE_CHILDREN
        user = t->child_user;
        kernel = t->child_kernel;
    } else if (a == 1) { // RUSAGE_THREAD
        thread_times(current, &user, &kernel);
    } else if (a == 0) {
        task_times(t, &user, &kernel);
        faults = (u32)counter_read(&t->aspace->faults);
    } else {
        return -EINVAL;
    }
    if (!b)
        return -EFAULT;
    return rusage_to_user(b, user, kernel, faults);
}

// --- who --------------------------------------------------------------------

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

// `id` 0 is the caller. With tasks_lock held.
static struct task *find_or_self(u32 id)
{
    struct task *t = id ? task_find(id) : current_task();
    if (t && !id)
        task_ref(t);
    return t;
}

SYSCALL_HANDLER(getpgid)
{
    struct task *t = find_or_self(a);
    if (!t)
        return -ESRCH;
    s32 id = (s32)t->pgid;
    task_unref(t);
    return id;
}

SYSCALL_HANDLER(getpgrp)
{
    return (s32)current_task()->pgid;
}

SYSCALL_HANDLER(getsid)
{
    struct task *t = find_or_self(a);
    if (!t)
        return -ESRCH;
    s32 id = (s32)t->sid;
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
    if (t != self && t->execed)
        return -EACCES;
    if (t->sid != self->sid || t->sid == t->id)
        return -EPERM;
    struct group_search s = { pgid, t->sid, pgid == t->id };
    if (!s.found)
        task_for_each_locked(find_group, &s);
    if (!s.found)
        return -EPERM;
    t->pgid = pgid;
    return 0;
}

SYSCALL_HANDLER(setpgid)
{
    if ((s32)b < 0)
        return -EINVAL;
    struct task *t = find_or_self(a);
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
        t->sid = t->pgid = t->id;
        t->ctty = NULL;
    }
    spin_unlock_irq(&tasks_lock, flags);
    return s.found ? -EPERM : (s32)t->id;
}

// --- identity: recorded, not enforced (everybody is root here) --------------

SYSCALL_HANDLER(getuid32)
{
    return (s32)current_task()->uid;
}
SYSCALL_HANDLER(getgid32)
{
    return (s32)current_task()->gid;
}
SYSCALL_HANDLER(geteuid32)
{
    return (s32)current_task()->euid;
}
SYSCALL_HANDLER(getegid32)
{
    return (s32)current_task()->egid;
}
SYSCALL_HANDLER(getuid)
{
    return (s32)(u16)current_task()->uid;
}
SYSCALL_HANDLER(getgid)
{
    return (s32)(u16)current_task()->gid;
}
SYSCALL_HANDLER(geteuid)
{
    return (s32)(u16)current_task()->euid;
}
SYSCALL_HANDLER(getegid)
{
    return (s32)(u16)current_task()->egid;
}

// ~0 leaves an id as it is.
static s32 set_ids(u32 *real, u32 *effective, u32 r, u32 e)
{
    if (r != ~0u)
        *real = r;
    if (e != ~0u)
        *effective = e;
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
    return three_ids(a, b, c, current_task()->uid, current_task()->euid);
}
SYSCALL_HANDLER(getresgid32)
{
    return three_ids(a, b, c, current_task()->gid, current_task()->egid);
}

SYSCALL_HANDLER(getgroups32)
{
    return 0;
} // root is in no further groups
SYSCALL_HANDLER(setgroups32)
{
    return a > 65536 ? -EINVAL : 0;
}

// --- limits -----------------------------------------------------------------

#define RLIMIT_STACK 3
#define RLIMIT_NPROC 6
#define RLIMIT_NOFILE 7
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
    default:
        return NULL;
    }
}

#define STACK_LIMIT_MAX MIB(256)
#define NOFILE_MAX 1024u

static u32 hard_limit(u32 which)
{
    switch (which) {
    case RLIMIT_STACK:
        return STACK_LIMIT_MAX;
    case RLIMIT_NOFILE:
        return NOFILE_MAX;
    default:
        return RLIM32_INFINITY;
    }
}

static int set_limit(struct task *t, u32 which, u64 soft)
{
    u32 *limit = limit_of(t, which);
    if (!limit)
        return 0;
    *limit = (u32)MIN(soft, (u64)hard_limit(which));
    return 0;
}

SYSCALL_HANDLER(ugetrlimit)
{
    if (a >= RLIMITS)
        return -EINVAL;
    u32 *limit = limit_of(current_task(), a);
    u32 pair[2] = { limit ? *limit : RLIM32_INFINITY, hard_limit(a) };
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
    struct task *t = find_or_self(a);
    if (!t)
        return -ESRCH;
    u32 *limit = limit_of(t, b);
    u64 old[2] = { limit ? *limit : ~0ull,
                   hard_limit(b) == RLIM32_INFINITY ? ~0ull : hard_limit(b) };
    int err = c ? set_limit(t, b, wanted[0]) : 0;
    task_unref(t);
    if (!err && d && copy_to_user(d, old, sizeof(old)))
        err = -EFAULT;
    return err;
}

// --- scheduling -------------------------------------------------------------

SYSCALL_HANDLER(sched_yield)
{
    sched_yield();
    return 0;
}

static int clamp_nice(s32 nice)
{
    return nice < -20 ? -20 : nice > 19 ? 19 : nice;
}

SYSCALL_HANDLER(nice)
{
    s32 by = (s32)a < -40 ? -40 : (s32)a > 40 ? 40 : (s32)a;
    thread_set_nice(current, clamp_nice(current_task()->nice + by));
    return 0;
}

#define PRIO_PROCESS 0
#define PRIO_PGRP 1
#define PRIO_USER 2

struct nice_search {
    u32 which, who;
    bool set, found;
    int nice; // to set, or the least found
};

static void visit_nice(struct task *t, void *arg)
{
    struct nice_search *s = arg;
    bool hit = s->which == PRIO_PROCESS ? t->id == s->who
               : s->which == PRIO_PGRP  ? t->pgid == s->who
                                        : t->uid == s->who;
    if (!hit)
        return;
    if (s->set)
        t->nice = s->nice;
    else if (!s->found || t->nice < s->nice)
        s->nice = t->nice;
    s->found = true;
}

static s32 walk_nice(struct nice_search *s)
{
    if (s->which > PRIO_USER)
        return -EINVAL;
    struct task *self = current_task();
    if (!s->who)
        s->who = s->which == PRIO_PROCESS ? self->id
                 : s->which == PRIO_PGRP  ? self->pgid
                                          : self->uid;
    u32 flags = spin_lock_irq(&tasks_lock);
    task_for_each_locked(visit_nice, s);
    spin_unlock_irq(&tasks_lock, flags);
    return s->found ? 0 : -ESRCH;
}

SYSCALL_HANDLER(getpriority)
{
    struct nice_search s = { .which = a, .who = b };
    s32 err = walk_nice(&s);
    return err ? err : 20 - s.nice; // 40..1, as the raw call has it
}

SYSCALL_HANDLER(setpriority)
{
    struct nice_search s = { a, b, true, false, clamp_nice((s32)c) };
    return walk_nice(&s);
}

static struct thread *thread_or_self(u32 tid)
{
    if (tid)
        return thread_find(tid);
    thread_ref(current);
    return current;
}

SYSCALL_HANDLER(sched_setaffinity)
{
    u32 mask = 0;
    if (copy_from_user(&mask, c, MIN(b, (u32)sizeof(mask))))
        return -EFAULT;
    struct thread *t = thread_or_self(a);
    if (!t)
        return -ESRCH;
    int err = thread_set_affinity(t, mask);
    thread_unref(t);
    return err;
}

SYSCALL_HANDLER(sched_getaffinity)
{
    if (b < sizeof(u32) || (b & 3))
        return -EINVAL;
    struct thread *t = thread_or_self(a);
    if (!t)
        return -ESRCH;
    u32 mask = t->affinity & (u32)((1ull << cpu_count) - 1);
    thread_unref(t);
    if (copy_to_user(c, &mask, sizeof(mask)))
        return -EFAULT;
    return sizeof(mask);
}

// --- threads ----------------------------------------------------------------

SYSCALL_HANDLER(set_tid_address)
{
    current->clear_tid = a;
    return (s32)current->tid;
}

SYSCALL_HANDLER(set_thread_area)
{
    return tls_set_from_user(current, a);
}

SYSCALL_HANDLER(get_thread_area)
{
    return tls_get_to_user(a);
}

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_REQUEUE 3
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10
#define FUTEX_PRIVATE 128u
#define FUTEX_CLOCK_REALTIME 256u

// WAIT_BITSET's time-out is absolute, WAIT's relative (futex(2)).
static int futex_deadline(u32 op, bool realtime, u32 addr, bool wide,
                          u64 *deadline)
{
    if (op == FUTEX_WAIT || !addr)
        return deadline_from_user(addr, wide, deadline);
    int err = time_from_user(addr, wide, deadline);
    if (!err && realtime) {
        s64 at = (s64)*deadline - wallclock_boot_ns();
        *deadline = at < 0 ? 0 : (u64)at;
    }
    return err;
}

static s32 do_futex(bool wide, u32 addr, u32 op_flags, u32 value, u32 timeout,
                    u32 addr2, u32 value3)
{
    bool private = op_flags & FUTEX_PRIVATE;
    u32 op = op_flags & ~(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME);
    u64 deadline;
    switch (op) {
    case FUTEX_WAIT:
        value3 = FUTEX_ANY;
        // fall through
    case FUTEX_WAIT_BITSET: {
        int err = futex_deadline(op, op_flags & FUTEX_CLOCK_REALTIME, timeout,
                                 wide, &deadline);
        if (!err)
            err = futex_wait(addr, private, value, deadline, value3);
        // A relative time-out would start anew: such a wait is not restarted.
        if (err == -EINTR && !(timeout && op == FUTEX_WAIT))
            err = -ERESTARTSYS;
        return err;
    }
    case FUTEX_WAKE:
        value3 = FUTEX_ANY;
        // fall through
    case FUTEX_WAKE_BITSET:
        return futex_wake(addr, private, value, value3);
    case FUTEX_REQUEUE:
        return futex_requeue(addr, addr2, private, value, timeout, NULL);
    case FUTEX_CMP_REQUEUE:
        return futex_requeue(addr, addr2, private, value, timeout, &value3);
    default:
        return -ENOSYS;
    }
}

SYSCALL_HANDLER(futex)
{
    return do_futex(false, a, b, c, d, e, f);
}
SYSCALL_HANDLER(futex_time64)
{
    return do_futex(true, a, b, c, d, e, f);
}
