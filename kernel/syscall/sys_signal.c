// System calls on signals.

#include "arch/regs.h"
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

// Signals all tasks of a process group, or (0) all tasks but init and the
// caller. -ESRCH: there is none; -EPERM: the caller may not signal any.
static int signal_many(u32 pgid, int sig, const struct siginfo *info)
{
    struct task *t = NULL;
    int result = -ESRCH;
    while ((t = task_walk(t, pgid))) {
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

// Any thread's id identifies its task, as on Linux. Referenced, or NULL.
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

s32 sys_kill(u32 id, u32 signal)
{
    struct siginfo info = info_from_caller(SI_USER);
    return kill_common((s32)id, (int)signal, &info);
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

s32 sys_tkill(u32 id, u32 signal)
{
    return thread_kill(0, id, (int)signal);
}

s32 sys_tgkill(u32 task, u32 id, u32 signal)
{
    if ((s32)task <= 0)
        return -EINVAL;
    return thread_kill(task, id, (int)signal);
}

s32 sys_rt_sigqueueinfo(u32 id, u32 signal, u32 siginfo)
{
    u32 raw[6];
    if (copy_from_user(raw, siginfo, sizeof(raw)))
        return -EFAULT;
    if ((s32)raw[2] >= 0) // only the kernel may set such an origin
        return -EPERM;
    struct siginfo info = { .code = (s32)raw[2],
                            .pid_or_addr = raw[3],
                            .uid = raw[4],
                            .status = (s32)raw[5] };
    struct task *t = find_task(id);
    if (!t)
        return -ESRCH;
    int err = signal_if_allowed(t, (int)signal, &info);
    task_unref(t);
    return err;
}

// --- actions and masks ------------------------------------------------------

s32 sys_rt_sigaction(u32 signal, u32 action, u32 old_action, u32 size)
{
    struct sigaction_k new, old;
    if (size != SIGSET_BYTES || signal < 1 || signal > NSIG)
        return -EINVAL;
    if (action && (SIGMASK(signal) & UNBLOCKABLE))
        return -EINVAL;
    if (action && copy_from_user(&new, action, sizeof(new)))
        return -EFAULT;
    struct signals *s = &current_task()->signals;
    u32 flags = spin_lock_irq(&s->lock);
    old = s->action[signal - 1];
    if (action) {
        new.mask &= ~UNBLOCKABLE;
        s->action[signal - 1] = new;
    }
    spin_unlock_irq(&s->lock, flags);
    if (action && signal_is_ignored((int)signal))
        signal_discard(current_task(), (int)signal);
    else if (action)
        itimers_signal_matters((int)signal);
    if (old_action && copy_to_user(old_action, &old, sizeof(old)))
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

s32 sys_rt_sigprocmask(u32 how, u32 new_set, u32 old_set, u32 size)
{
    sigset_t set, old = current->blocked;
    if (size != SIGSET_BYTES)
        return -EINVAL;
    if (new_set) {
        if (copy_from_user(&set, new_set, sizeof(set)))
            return -EFAULT;
        if (how == 0) // SIG_BLOCK
            set_mask(old | set);
        else if (how == 1) // SIG_UNBLOCK
            set_mask(old & ~set);
        else if (how == 2) // SIG_SETMASK
            set_mask(set);
        else
            return -EINVAL;
    }
    if (old_set && copy_to_user(old_set, &old, sizeof(old)))
        return -EFAULT;
    return 0;
}

s32 sys_rt_sigpending(u32 buffer, u32 size)
{
    if (size > SIGSET_BYTES)
        return -EINVAL;
    struct thread *t = current;
    u32 flags = spin_lock_irq(&t->task->signals.lock);
    sigset_t set = (t->pending | t->task->signals.pending) & t->blocked;
    spin_unlock_irq(&t->task->signals.lock, flags);
    return copy_to_user(buffer, &set, size);
}

s32 sys_rt_sigsuspend(u32 new_mask, u32 size)
{
    sigset_t set;
    if (size != SIGSET_BYTES)
        return -EINVAL;
    if (copy_from_user(&set, new_mask, sizeof(set)))
        return -EFAULT;
    signal_set_temporary_mask(set);
    thread_sleep_until(WAIT_FOREVER, WAIT_INTERRUPTIBLE);
    return -ERESTARTNOHAND;
}

s32 sys_pause(void)
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

TIME_TWINS(rt_sigtimedwait, rt_sigtimedwait_time64,
           (u32 set, u32 info, u32 timeout, u32 size),
           timed_wait(set, info, timeout, size, wide))

s32 sys_rt_sigreturn(void)
{
    struct trapframe *tf = syscall_frame();
    if (sigframe_pop(tf, true))
        signal_fault(SIGSEGV, SI_KERNEL, 0);
    return (s32)trap_result(tf);
}

s32 sys_sigreturn(void)
{
    struct trapframe *tf = syscall_frame();
    if (sigframe_pop(tf, false))
        signal_fault(SIGSEGV, SI_KERNEL, 0);
    return (s32)trap_result(tf);
}

#define SS_ONSTACK 1u
#define SS_DISABLE 2u
#define MINSIGSTKSZ 2048u

s32 sys_sigaltstack(u32 stack, u32 old_stack)
{
    struct {
        u32 sp, flags, size;
    } new, old;
    struct thread *t = current;
    bool on = on_altstack(trap_user_sp(syscall_frame()));
    old.sp = t->altstack_base;
    old.size = t->altstack_size;
    old.flags = !t->altstack_size ? SS_DISABLE : on ? SS_ONSTACK : 0;
    if (stack) {
        if (copy_from_user(&new, stack, sizeof(new)))
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
    if (old_stack && copy_to_user(old_stack, &old, sizeof(old)))
        return -EFAULT;
    return 0;
}
