// System calls on signals.

#include "arch/sigframe.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/task/task.h"

#define SIGSET_BYTES 8u
#define UNBLOCKABLE (SIGMASK(SIGKILL) | SIGMASK(SIGSTOP))
_Static_assert(sizeof(sigset_t) == SIGSET_BYTES, "the ABI's sigset_t");
_Static_assert(sizeof(struct sigaction_k) == 20, "rt_sigaction's argument");

static struct siginfo info_from_caller(int code)
{
    struct task *t = current_task();
    return (struct siginfo){ .signo = 0,
                             .err = 0,
                             .code = code,
                             .pid_or_addr = t->id,
                             .uid = READ_ONCE(t->uid),
                             .status = 0 };
}

// --- sending ----------------------------------------------------------------

static int signal_if_allowed(struct task *t, int sig,
                             const struct siginfo *info)
{
    return may_signal(t, sig) ? signal_send_task(t, sig, info) : -EPERM;
}

// To all of a process group, or (0) but for init and the caller to everyone.
// -ESRCH: there is none; -EPERM: the caller may not signal any.
static int signal_many(u32 pgid, int sig, const struct siginfo *info)
{
    struct task *t = NULL;
    int result = -ESRCH;
    while ((t = task_walk(t, pgid)) != NULL) {
        if (!pgid && (t->id == 1 || t == current_task()))
            continue;
        int err = signal_if_allowed(t, sig, info);
        if (err != -EPERM)
            result = 0;
        else if (result == -ESRCH)
            result = err;
    }
    return result;
}

// Any thread's id stands for its task, as on Linux. Referenced, or NULL.
static struct task *find_task(u32 id)
{
    struct task *t = task_find(id);
    struct thread *thread = t ? NULL : thread_find(id);
    if (thread) {
        t = thread->task;
        task_ref(t);
        thread_unref(thread);
    }
    return t;
}

static s32 kill_common(s32 pid, int sig, const struct siginfo *info)
{
    if (sig < 0 || sig > NSIG)
        return -EINVAL;
    if (pid == (s32)current_task()->id)
        return signal_send_task(current_task(), sig, info);
    if (pid > 0) {
        struct task *t = find_task((u32)pid);
        if (!t)
            return -ESRCH;
        int err = signal_if_allowed(t, sig, info);
        task_unref(t);
        return err;
    }
    if (pid == -1)
        return signal_many(0, sig, info);
    if (pid == INT32_MIN)
        return -ESRCH;
    u32 pgid = pid ? (u32)-pid : READ_ONCE(current_task()->pgid);
    return pgid ? signal_many(pgid, sig, info) : -ESRCH;
}

SYSCALL_HANDLER(kill)
{
    struct siginfo info = info_from_caller(SI_USER);
    return kill_common((s32)a, (int)b, &info);
}

static s32 thread_kill(u32 task, u32 tid, int sig)
{
    if ((s32)tid <= 0)
        return -EINVAL;
    struct thread *t = thread_find(tid);
    if (!t)
        return -ESRCH;
    struct siginfo info = info_from_caller(SI_TKILL);
    int err = task && t->task->id != task ? -ESRCH
              : !may_signal(t->task, sig) ? -EPERM
                                          : signal_send_thread(t, sig, &info);
    thread_unref(t);
    return err;
}

SYSCALL_HANDLER(tkill)
{
    return thread_kill(0, a, (int)b);
}

SYSCALL_HANDLER(tgkill)
{
    if ((s32)a <= 0)
        return -EINVAL;
    return thread_kill(a, b, (int)c);
}

SYSCALL_HANDLER(rt_sigqueueinfo)
{
    u32 raw[6];
    if (copy_from_user(raw, c, sizeof(raw)))
        return -EFAULT;
    if ((s32)raw[2] >= 0) // only the kernel says where a signal is from
        return -EPERM;
    struct siginfo info = { .code = (s32)raw[2],
                            .pid_or_addr = raw[3],
                            .uid = raw[4],
                            .status = (s32)raw[5] };
    struct task *t = find_task(a);
    if (!t)
        return -ESRCH;
    int err = signal_if_allowed(t, (int)b, &info);
    task_unref(t);
    return err;
}

// --- actions and masks ------------------------------------------------------

SYSCALL_HANDLER(rt_sigaction)
{
    struct sigaction_k new, old;
    if (d != SIGSET_BYTES || a < 1 || a > NSIG)
        return -EINVAL;
    if (b && (SIGMASK(a) & UNBLOCKABLE))
        return -EINVAL;
    if (b && copy_from_user(&new, b, sizeof(new)))
        return -EFAULT;
    struct signals *s = &current_task()->signals;
    u32 flags = spin_lock_irq(&s->lock);
    old = s->action[a - 1];
    if (b) {
        new.mask &= ~UNBLOCKABLE;
        s->action[a - 1] = new;
    }
    spin_unlock_irq(&s->lock, flags);
    if (b && signal_is_ignored((int)a))
        signal_discard(current_task(), (int)a);
    if (c && copy_to_user(c, &old, sizeof(old)))
        return -EFAULT;
    return 0;
}

static void set_mask(sigset_t mask)
{
    struct thread *t = current;
    u32 flags = spin_lock_irq(&t->task->signals.lock);
    WRITE_ONCE(t->blocked, mask & ~UNBLOCKABLE);
    if (signal_deliverable())
        WRITE_ONCE(t->signal_pending, true);
    spin_unlock_irq(&t->task->signals.lock, flags);
}

SYSCALL_HANDLER(rt_sigprocmask)
{
    sigset_t set, old = current->blocked;
    if (d != SIGSET_BYTES)
        return -EINVAL;
    if (b) {
        if (copy_from_user(&set, b, sizeof(set)))
            return -EFAULT;
        if (a == 0) // SIG_BLOCK
            set_mask(old | set);
        else if (a == 1) // SIG_UNBLOCK
            set_mask(old & ~set);
        else if (a == 2) // SIG_SETMASK
            set_mask(set);
        else
            return -EINVAL;
    }
    if (c && copy_to_user(c, &old, sizeof(old)))
        return -EFAULT;
    return 0;
}

SYSCALL_HANDLER(rt_sigpending)
{
    if (b > SIGSET_BYTES)
        return -EINVAL;
    struct thread *t = current;
    u32 flags = spin_lock_irq(&t->task->signals.lock);
    sigset_t set = (t->pending | t->task->signals.pending) & t->blocked;
    spin_unlock_irq(&t->task->signals.lock, flags);
    return copy_to_user(a, &set, b);
}

SYSCALL_HANDLER(rt_sigsuspend)
{
    sigset_t set;
    if (b != SIGSET_BYTES)
        return -EINVAL;
    if (copy_from_user(&set, a, sizeof(set)))
        return -EFAULT;
    signal_set_temporary_mask(set);
    thread_sleep_until(WAIT_FOREVER, WAIT_INTERRUPTIBLE);
    return -ERESTARTNOHAND;
}

SYSCALL_HANDLER(pause)
{
    thread_sleep_until(WAIT_FOREVER, WAIT_INTERRUPTIBLE);
    return -ERESTARTNOHAND;
}

static s32 timed_wait(u32 set_addr, u32 info_addr, u32 timeout, u32 size,
                      bool wide)
{
    sigset_t set;
    u64 deadline;
    if (size != SIGSET_BYTES)
        return -EINVAL;
    if (copy_from_user(&set, set_addr, sizeof(set)))
        return -EFAULT;
    int err = deadline_from_user(timeout, wide, &deadline);
    if (err)
        return err;
    struct siginfo info;
    int sig = signal_wait_for(set & ~UNBLOCKABLE, deadline, &info);
    if (sig > 0 && info_addr && siginfo_to_user(info_addr, &info))
        return -EFAULT;
    return sig;
}

SYSCALL_HANDLER(rt_sigtimedwait)
{
    return timed_wait(a, b, c, d, false);
}
SYSCALL_HANDLER(rt_sigtimedwait_time64)
{
    return timed_wait(a, b, c, d, true);
}

SYSCALL_HANDLER(rt_sigreturn)
{
    struct trapframe *tf = syscall_frame();
    if (sigframe_pop(tf, true))
        signal_fault(SIGSEGV, SI_KERNEL, 0);
    return (s32)tf->eax;
}

SYSCALL_HANDLER(sigreturn)
{
    struct trapframe *tf = syscall_frame();
    if (sigframe_pop(tf, false))
        signal_fault(SIGSEGV, SI_KERNEL, 0);
    return (s32)tf->eax;
}

#define SS_ONSTACK 1u
#define SS_DISABLE 2u
#define MINSIGSTKSZ 2048u

SYSCALL_HANDLER(sigaltstack)
{
    struct {
        u32 sp, flags, size;
    } new, old;
    struct thread *t = current;
    bool on = on_altstack(syscall_frame()->esp);
    old.sp = t->altstack_base;
    old.size = t->altstack_size;
    old.flags = !t->altstack_size ? SS_DISABLE : on ? SS_ONSTACK : 0;
    if (a) {
        if (copy_from_user(&new, a, sizeof(new)))
            return -EFAULT;
        if (on)
            return -EPERM;
        if (new.flags & ~(SS_DISABLE | SS_ONSTACK))
            return -EINVAL;
        bool off = new.flags &SS_DISABLE;
        if (!off && new.size < MINSIGSTKSZ)
            return -ENOMEM;
        set_altstack(off ? 0 : new.sp, off ? 0 : new.size);
    }
    if (b && copy_to_user(b, &old, sizeof(old)))
        return -EFAULT;
    return 0;
}
