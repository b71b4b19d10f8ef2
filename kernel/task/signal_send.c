// Sending signals: to tasks, threads, groups; faults. Locking: signal.c.

#include "kernel/task/signal_private.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"

// Stop and continue signals cancel pending ones of the other kind, even if
// blocked or ignored.
static void cancel_opposites(struct task *t, struct thread *target, int sig)
{
    spin_assert_held(&t->signals.lock);
    assert_checked(sig >= 1 && sig <= NSIG);
    sigset_t gone = 0;
    if (sig == SIGCONT)
        gone = STOP_SIGNALS;
    else if (sig >= SIGSTOP && sig <= SIGTTOU) // STOP_SIGNALS
        gone = SIGMASK(SIGCONT);
    if (!gone)
        return;
    signal_drop(&t->signals.pending, &t->signals.queue, gone);
    if (target)
        signal_drop(&target->pending, &target->queue, gone);
}

// Whether the signal certainly has no effect. signals.lock held.
static bool discard(struct task *t, int sig, sigset_t blocked)
{
    spin_assert_held(&t->signals.lock);
    return signal_ignored(&t->signals, sig) && !(blocked & SIGMASK(sig)) &&
           sig != SIGCONT;
}

// Makes the signal pending. 0, or -EAGAIN: too many are queued.
static ALWAYS_INLINE int add_pending(struct task *t, sigset_t *pending,
                                     struct siginfo_queue *q, int sig,
                                     const struct siginfo *info)
{
    sigset_t bit = SIGMASK(sig);
    spin_assert_held(&t->signals.lock);
    if (*pending & bit && !signal_queues(sig))
        return 0;
    int err = signal_queue_put(q, sig, info,
                               READ_ONCE(t->limits[LIMIT_SIGPENDING].soft),
                               READ_ONCE(t->uid));
    // A signal of kill or a timer becomes pending even without its siginfo.
    if (err && signal_queues(sig) && info->code != SI_USER &&
        info->code != SI_TIMER)
        return err;
    *pending |= bit;
    return 0;
}

static void kick(struct thread *t, int sig)
{
    WRITE_ONCE(t->signal_pending, true);
    thread_wake_signal(t, sig == SIGKILL || sig == SIGCONT);
    if (READ_ONCE(t->on_cpu) && t != current)
        smp_reschedule(READ_ONCE(t->cpu)); // it checks on return to user mode
}

void signal_kick(struct thread *t)
{
    kick(t, SIGKILL);
}

void signal_discard(struct task *t, int sig)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    spin_lock(&t->signals.lock);
    struct thread *th;
    list_for_each(th, &t->threads, task_node)
        signal_drop(&th->pending, &th->queue, SIGMASK(sig));
    signal_drop(&t->signals.pending, &t->signals.queue, SIGMASK(sig));
    spin_unlock(&t->signals.lock);
    spin_unlock_irq(&tasks_lock, flags);
}

int signal_send_thread(struct thread *t, int sig, const struct siginfo *info)
{
    if (sig < 0 || sig > NSIG)
        return -EINVAL;
    if (!sig)
        return 0;
    struct task *task = t->task;
    if (task == &kernel_task)
        return -EPERM;
    u32 flags = spin_lock_irq(&task->signals.lock);
    cancel_opposites(task, t, sig);
    bool gone = discard(task, sig, t->blocked);
    int err = gone ? 0 : add_pending(task, &t->pending, &t->queue, sig, info);
    spin_unlock_irq(&task->signals.lock, flags);
    if (sig == SIGCONT)
        task_continue(task);
    if (!gone && !err) {
        TRACE(signal_send, .task = task->id, .thread = t->tid,
              .signal = (u8)sig);
        kick(t, sig);
    }
    return err;
}

// Kicks a thread that does not block the signal, sleeping or running; for
// SIGKILL, all threads. `blocked` is read without its lock, but after the
// signal was made pending with the lock held: a thread that changes its mask
// after this read sees the signal.
static void kick_task(struct task *t, int sig)
{
    // Fast path: sent by the task's only thread to itself. Only that thread
    // could create another one. Not in an interrupt, which may have occurred
    // between wait_prepare and the thread's sleep.
    if (t == current_task() && READ_ONCE(t->thread_count) == 1 &&
        !this_cpu_read(irq_depth)) {
        WRITE_ONCE(current->signal_pending, true);
        return;
    }
    u32 flags = spin_lock_irq(&tasks_lock);
    struct thread *th;
    bool found = false;
    list_for_each(th, &t->threads, task_node) {
        if ((READ_ONCE(th->blocked) & SIGMASK(sig)) ||
            (found && sig != SIGKILL))
            continue;
        kick(th, sig);
        found = true;
    }
    spin_unlock_irq(&tasks_lock, flags);
}

// Whether a thread of the task blocks the signal. It may wait for it later
// (sigwait), so the signal is kept even if it is ignored.
static bool is_blocked(const struct task *t, int sig)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    bool found = false;
    struct thread *th;
    list_for_each(th, &t->threads, task_node)
        found |= (READ_ONCE(th->blocked) & SIGMASK(sig)) != 0;
    spin_unlock_irq(&tasks_lock, flags);
    return found;
}

bool signal_discarded(struct task *t, const struct thread *to, int sig)
{
    u32 flags = spin_lock_irq(&t->signals.lock);
    bool ignored =
        signal_ignored(&t->signals, sig) && sig != SIGCONT && sig != SIGCHLD;
    spin_unlock_irq(&t->signals.lock, flags);
    if (!ignored)
        return false;
    return to ? !(READ_ONCE(to->blocked) & SIGMASK(sig)) : !is_blocked(t, sig);
}

int signal_send_task(struct task *t, int sig, const struct siginfo *info)
{
    if (sig < 0 || sig > NSIG)
        return -EINVAL;
    if (t == &kernel_task)
        return sig ? -EPERM : 0;
    if (!sig || READ_ONCE(t->zombie))
        return 0;
    u32 flags = spin_lock_irq(&t->signals.lock);
    cancel_opposites(t, NULL, sig);
    // Init gets only signals for which it has set an action (kill(2)).
    bool gone = t->id == 1 && t->signals.action[sig - 1].handler == SIG_DFL;
    if (signal_ignored(&t->signals, sig) && sig != SIGCONT && sig != SIGCHLD) {
        spin_unlock_irq(&t->signals.lock, flags);
        gone |= !is_blocked(t, sig);
        flags = spin_lock_irq(&t->signals.lock);
    }
    int err = gone ? 0
                   : add_pending(t, &t->signals.pending, &t->signals.queue, sig,
                                 info);
    spin_unlock_irq(&t->signals.lock, flags);
    if (sig == SIGCONT)
        task_continue(t);
    if (!gone && !err) {
        TRACE(signal_send, .task = t->id, .signal = (u8)sig);
        kick_task(t, sig);
    }
    return err;
}

// Tasks that are created during the walk are appended to the list, so the walk
// reaches them. A task with a pending signal creates no task (attach_task), so
// that even a fork bomb is killed.
int signal_send_pgrp(u32 pgid, int sig, const struct siginfo *info)
{
    if (sig < 0 || sig > NSIG)
        return -EINVAL;
    struct task *t = NULL;
    int result = -ESRCH;
    while (pgid && (t = task_walk(t, pgid))) {
        signal_send_task(t, sig, info);
        result = 0;
    }
    return result;
}

void signal_fault(int sig, int code, u32 addr)
{
    assert_checked(sig >= 1 && sig <= NSIG);
    struct thread *t = current;
    struct signals *s = &t->task->signals;
    struct siginfo info = { .signo = sig, .code = code, .pid_or_addr = addr };
    u32 flags = spin_lock_irq(&s->lock);
    struct sigaction_k *a = &s->action[sig - 1];
    if ((t->blocked & SIGMASK(sig)) || a->handler == SIG_IGN) {
        a->handler = SIG_DFL; // else the instruction would fault forever
        WRITE_ONCE(t->blocked, t->blocked & ~SIGMASK(sig));
    }
    signal_drop(&t->pending, &t->queue, SIGMASK(sig));
    t->pending |= SIGMASK(sig);
    // Without memory only the number is pending, without siginfo.
    (void)signal_queue_put(&t->queue, sig, &info, ~0u, t->task->uid);
    spin_unlock_irq(&s->lock, flags);
    WRITE_ONCE(t->signal_pending, true);
}
