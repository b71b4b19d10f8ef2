// Delivery of signals: waiting for them, handlers, default actions. Locking:
// signal.c.

#include "kernel/base/log.h"
#include "kernel/task/signal_private.h"

#include "arch/regs.h"
#include "arch/sigframe.h"
#include "kernel/base/errno.h"
#include "kernel/base/user_return.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"

// Numbers of the faults and of SIGKILL are among the first 32.
#define FAULTS                                                   \
    (u32)(SIGMASK(SIGSEGV) | SIGMASK(SIGBUS) | SIGMASK(SIGILL) | \
          SIGMASK(SIGFPE) | SIGMASK(SIGTRAP))

// Before a handler runs: applies the flags and mask of its action. Returns the
// mask to restore when the handler returns.
static sigset_t begin_handler(struct thread *t, struct sigaction_k *action,
                              sigset_t bit)
{
    spin_assert_held(&t->task->signals.lock);
    assert_checked(action->handler > SIG_IGN);
    sigset_t restore = t->restore_mask ? t->saved_mask : t->blocked;
    sigset_t mask = t->blocked | action->mask;
    if (!(action->flags & SA_NODEFER))
        mask |= bit;
    if (action->flags & SA_RESETHAND)
        action->handler = SIG_DFL;
    t->restore_mask = false;
    WRITE_ONCE(t->blocked, mask & ~UNBLOCKABLE);
    if (deliverable(t)) // a further signal: its handler runs first
        WRITE_ONCE(t->signal_pending, true);
    return restore;
}

static ALWAYS_INLINE void take_one(sigset_t *pending, struct siginfo_queue *q,
                                   int sig, struct siginfo *info)
{
    assert_checked(*pending & SIGMASK(sig));
    if (!signal_queue_take(q, sig, info))
        *pending &= ~SIGMASK(sig);
}

// The signal to take first of a set that is not empty. Faults precede other
// signals, because they belong to the instruction in the trap frame.
static ALWAYS_INLINE int first_signal(const struct thread *t, sigset_t set)
{
    u32 low = (u32)set;
    if (low & (u32)SIGMASK(SIGKILL))
        return SIGKILL;
    u32 faults = low & (u32)t->pending & FAULTS;
    return signal_lowest(faults ? faults : set);
}

// Takes the next deliverable signal; 0 if there is none. If it has a handler,
// it is blocked from here on, and *restore is the mask to restore.
static int take_signal(struct siginfo *info, struct sigaction_k *action,
                       sigset_t *restore)
{
    struct thread *t = current;
    struct signals *s = &t->task->signals;
    u32 flags = spin_lock_irq(&s->lock);
    sigset_t set;
    int sig = 0;
    while (!sig && (set = deliverable(t))) {
        sig = first_signal(t, set);
        sigset_t bit = SIGMASK(sig);
        if (t->pending & bit)
            take_one(&t->pending, &t->queue, sig, info);
        else
            take_one(&s->pending, &s->queue, sig, info);
        *action = s->action[sig - 1];
        if (action->handler > SIG_IGN)
            *restore = begin_handler(t, &s->action[sig - 1], bit);
        else if (signal_ignored(s, sig))
            sig = 0;
    }
    spin_unlock_irq(&s->lock, flags);
    TRACE_IF(signal_deliver, sig, .handler = action->handler,
             .signal = (u8)sig);
    return sig;
}

static int take_from_set(sigset_t set, struct siginfo *info)
{
    struct thread *t = current;
    struct signals *s = &t->task->signals;
    u32 flags = spin_lock_irq(&s->lock);
    sigset_t own = t->pending & set, shared = s->pending & set;
    int sig = 0;
    if (own) {
        sig = signal_lowest(own);
        take_one(&t->pending, &t->queue, sig, info);
    } else if (shared) {
        sig = signal_lowest(shared);
        take_one(&s->pending, &s->queue, sig, info);
    }
    spin_unlock_irq(&s->lock, flags);
    TRACE_IF(signal_deliver, sig, .signal = (u8)sig);
    return sig;
}

// The set is unblocked during the wait, so that a sender wakes this thread.
int signal_wait_for(sigset_t set, u64 deadline, struct siginfo *info)
{
    assert_may_sleep();
    struct thread *t = current;
    struct signals *s = &t->task->signals;
    int sig = take_from_set(set, info);
    if (sig)
        return sig;
    u32 flags = spin_lock_irq(&s->lock);
    sigset_t blocked = t->blocked;
    WRITE_ONCE(t->blocked, t->blocked & ~set);
    WRITE_ONCE(t->signal_pending, true);
    spin_unlock_irq(&s->lock, flags);

    int err = 0;
    WRITE_ONCE(t->wait_on, "sigwait");
    for (;;) {
        wait_prepare(WAIT_INTERRUPTIBLE);
        sig = take_from_set(set, info);
        if (sig || err)
            break;
        err = wait_sleep(WAIT_INTERRUPTIBLE, deadline);
    }
    wait_finish();
    flags = spin_lock_irq(&s->lock);
    WRITE_ONCE(t->blocked, blocked);
    WRITE_ONCE(t->signal_pending, true);
    spin_unlock_irq(&s->lock, flags);
    return sig ? sig : err == -ETIMEDOUT ? -EAGAIN : -EINTR;
}

// Restarts the interrupted system call, or makes it fail with EINTR.
static void finish_call(struct trapframe *tf, bool restart)
{
    struct thread *t = current;
    if (!t->restart_error)
        return;
    if (restart) {
        trap_restart_call(tf, t->restart_call);
    } else {
        trap_set_result(tf, (u32)-EINTR);
        t->call_failed = true;
        t->restart_deadline = 0;
    }
    t->restart_error = 0;
}

// Builds the handler's frame. If the stack is bad, the task ends by SIGSEGV.
static void run_handler(struct trapframe *tf, int sig,
                        const struct siginfo *info,
                        const struct sigaction_k *action, sigset_t restore)
{
    assert_checked(sig >= 1 && sig <= NSIG && action->handler > SIG_IGN);
    u32 error = current->restart_error;
    finish_call(tf, error == ERESTARTNOINTR ||
                        (error == ERESTARTSYS && (action->flags & SA_RESTART)));
    if (sigframe_push(tf, sig, info, action, restore))
        task_exit(WAIT_STATUS_SIGNALED(SIGSEGV));
}

static bool may_stop(int sig)
{
    // Terminal stop signals have no effect in an orphaned process group, which
    // no process could continue. Only the common case is detected: the group of
    // a session leader.
    if (sig == SIGSTOP)
        return true;
    struct task *t = current_task();
    return !(t->id == READ_ONCE(t->sid));
}

void signal_deliver(struct trapframe *tf)
{
    assert_may_sleep();
    struct thread *t = current;
    WRITE_ONCE(t->signal_pending, false);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (READ_ONCE(t->task->stopped))
        task_stop_current(READ_ONCE(t->task->stop_signal));

    for (;;) {
        if (READ_ONCE(t->must_exit))
            task_exit_thread(READ_ONCE(t->task->exit_code));
        struct siginfo info;
        struct sigaction_k action;
        sigset_t restore = 0;
        int sig = take_signal(&info, &action, &restore);
        if (!sig)
            break;
        if (action.handler > SIG_IGN) {
            run_handler(tf, sig, &info, &action, restore);
            return;
        }
        if (SIGMASK(sig) & STOP_SIGNALS) {
            if (may_stop(sig))
                task_stop_current(sig);
            continue;
        }
        task_exit(WAIT_STATUS_SIGNALED(sig));
    }
    finish_call(tf, true);
    if (t->restore_mask) {
        u32 flags = spin_lock_irq(&t->task->signals.lock);
        WRITE_ONCE(t->blocked, t->saved_mask);
        t->restore_mask = false;
        WRITE_ONCE(t->signal_pending, true); // the old mask may unblock some
        spin_unlock_irq(&t->task->signals.lock, flags);
    }
}

void user_return_work(struct trapframe *tf)
{
    if (this_cpu_read(need_resched))
        schedule();
    if (READ_ONCE(current->signal_pending))
        signal_deliver(tf);
}
