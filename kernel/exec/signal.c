// Signals: sending, queues, what is deliverable, default actions. The frame on
// the user's stack is arch's (arch/i386/cpu/sigframe.c).
//
// signals.lock (interrupt-disabling) guards a task's actions and pending set
// and its threads' pending and blocked sets. thread->signal_pending is a hint
// that the way to user mode looks at without a lock: set after anything that
// may make a signal deliverable, cleared by the thread itself before it looks.

#include "kernel/exec/signal.h"

#include "kernel/errno.h"
#include "kernel/exec/sigframe.h"
#include "kernel/init/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/task.h"
#include "lib/string.h"

#define UNBLOCKABLE (SIGMASK(SIGKILL) | SIGMASK(SIGSTOP))
#define STOP_SIGNALS \
    (SIGMASK(SIGSTOP) | SIGMASK(SIGTSTP) | SIGMASK(SIGTTIN) | SIGMASK(SIGTTOU))
#define IGNORED_BY_DEFAULT \
    (SIGMASK(SIGCHLD) | SIGMASK(SIGURG) | SIGMASK(SIGWINCH) | SIGMASK(SIGCONT))
#define FAULTS                                                                \
    (SIGMASK(SIGSEGV) | SIGMASK(SIGBUS) | SIGMASK(SIGILL) | SIGMASK(SIGFPE) | \
     SIGMASK(SIGTRAP))

SLAB_CACHE(siginfo_cache, struct siginfo);

// --- queues -----------------------------------------------------------------

static void queue_info(struct siginfo_queue *q, int sig,
                       const struct siginfo *info)
{
    if (!info || q->info[sig - 1])
        return;
    // Without memory only the number arrives, as POSIX allows.
    struct siginfo *copy = slab_alloc(&siginfo_cache);
    if (copy)
        *copy = *info;
    q->info[sig - 1] = copy;
}

static void take_info(struct siginfo_queue *q, int sig, struct siginfo *out)
{
    struct siginfo *info = q->info[sig - 1];
    q->info[sig - 1] = NULL;
    if (info) {
        *out = *info;
        slab_free(&siginfo_cache, info);
    } else {
        *out = (struct siginfo){ .code = SI_USER };
    }
    out->signo = sig;
}

static void drop(sigset_t *pending, struct siginfo_queue *q, sigset_t mask)
{
    sigset_t gone = *pending & mask;
    *pending &= ~mask;
    for (int sig = 1; gone; sig++, gone >>= 1) {
        struct siginfo ignored;
        if (gone & 1)
            take_info(q, sig, &ignored);
    }
}

void signal_queue_clear(struct siginfo_queue *q)
{
    for (int sig = 1; sig <= NSIG; sig++) {
        if (q->info[sig - 1])
            slab_free(&siginfo_cache, q->info[sig - 1]);
        q->info[sig - 1] = NULL;
    }
}

// --- what a signal would do -------------------------------------------------

// signals.lock held.
static bool ignored(const struct signals *s, int sig)
{
    u32 handler = s->action[sig - 1].handler;
    if (handler == SIG_IGN)
        return !(SIGMASK(sig) & UNBLOCKABLE);
    return handler == SIG_DFL && (SIGMASK(sig) & IGNORED_BY_DEFAULT);
}

bool signal_children_unwanted(struct task *t)
{
    u32 flags = spin_lock_irq(&t->signals.lock);
    const struct sigaction_k *a = &t->signals.action[SIGCHLD - 1];
    bool unwanted = a->handler == SIG_IGN || (a->flags & SA_NOCLDWAIT);
    spin_unlock_irq(&t->signals.lock, flags);
    return unwanted;
}

sigset_t signal_deliverable(void)
{
    struct thread *t = current;
    return (t->pending | t->task->signals.pending) & ~t->blocked;
}

bool signal_waiting(void)
{
    struct thread *t = current;
    if (!READ_ONCE(t->signal_pending))
        return false;
    if (READ_ONCE(t->task->stopped) || READ_ONCE(t->must_exit))
        return true;
    struct signals *s = &t->task->signals;
    u32 flags = spin_lock_irq(&s->lock);
    sigset_t set = signal_deliverable();
    for (int sig = 1; sig <= NSIG; sig++) {
        if ((set & SIGMASK(sig)) && ignored(s, sig))
            set &= ~SIGMASK(sig);
    }
    spin_unlock_irq(&s->lock, flags);
    return set != 0;
}

bool signal_ignored_or_blocked(int sig)
{
    struct signals *s = &current_task()->signals;
    u32 flags = spin_lock_irq(&s->lock);
    bool yes = (current->blocked & SIGMASK(sig)) ||
               s->action[sig - 1].handler == SIG_IGN;
    spin_unlock_irq(&s->lock, flags);
    return yes;
}

bool signal_is_ignored(int sig)
{
    struct signals *s = &current_task()->signals;
    u32 flags = spin_lock_irq(&s->lock);
    bool yes = ignored(s, sig);
    spin_unlock_irq(&s->lock, flags);
    return yes;
}

void signal_reset_handlers(struct signals *s)
{
    u32 flags = spin_lock_irq(&s->lock);
    for (int i = 0; i < NSIG; i++) {
        u32 keep = s->action[i].handler == SIG_IGN ? SIG_IGN : SIG_DFL;
        s->action[i] = (struct sigaction_k){ .handler = keep };
    }
    spin_unlock_irq(&s->lock, flags);
}

void signal_set_temporary_mask(sigset_t mask)
{
    struct thread *t = current;
    u32 flags = spin_lock_irq(&t->task->signals.lock);
    t->saved_mask = t->blocked;
    t->restore_mask = true;
    WRITE_ONCE(t->blocked, mask & ~UNBLOCKABLE);
    spin_unlock_irq(&t->task->signals.lock, flags);
    WRITE_ONCE(t->signal_pending, true); // look again
}

// --- sending ----------------------------------------------------------------

// Stop and continue signals cancel each other, delivered or not.
static void cancel_opposites(struct task *t, struct thread *target, int sig)
{
    sigset_t gone = 0;
    if (sig == SIGCONT)
        gone = STOP_SIGNALS;
    else if (SIGMASK(sig) & STOP_SIGNALS)
        gone = SIGMASK(SIGCONT);
    if (!gone)
        return;
    drop(&t->signals.pending, &t->signals.queue, gone);
    if (target)
        drop(&target->pending, &target->queue, gone);
}

// signals.lock held. Nothing will come of it for sure.
static bool discard(struct task *t, int sig, sigset_t blocked)
{
    return ignored(&t->signals, sig) && !(blocked & SIGMASK(sig)) &&
           sig != SIGCONT;
}

static void kick(struct thread *t, int sig)
{
    WRITE_ONCE(t->signal_pending, true);
    thread_wake_signal(t, sig == SIGKILL || sig == SIGCONT);
    if (READ_ONCE(t->on_cpu) && t != current)
        smp_reschedule(READ_ONCE(t->cpu)); // it looks on its way back from that
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
        drop(&th->pending, &th->queue, SIGMASK(sig));
    drop(&t->signals.pending, &t->signals.queue, SIGMASK(sig));
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
    if (!gone && !(t->pending & SIGMASK(sig))) {
        t->pending |= SIGMASK(sig);
        queue_info(&t->queue, sig, info);
    }
    spin_unlock_irq(&task->signals.lock, flags);
    if (sig == SIGCONT)
        task_continue(task);
    if (!gone)
        kick(t, sig);
    return 0;
}

// A thread that would take it: one that does not block it, the sleeping or
// running ones alike. `blocked` is read without its lock, but after the signal
// was made pending under it: a thread that changes its mask later than this
// looks sees the signal then.
static void kick_task(struct task *t, int sig)
{
    // To itself, and nobody else is there: only it could change that. Not from
    // an interrupt, which may have hit it on its way to sleep.
    if (t == current_task() && READ_ONCE(t->thread_count) == 1 &&
        !this_cpu()->irq_depth) {
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

int signal_send_task(struct task *t, int sig, const struct siginfo *info)
{
    if (sig < 0 || sig > NSIG)
        return -EINVAL;
    if (t == &kernel_task)
        return sig ? -EPERM : 0;
    if (!sig || t->zombie)
        return 0;
    u32 flags = spin_lock_irq(&t->signals.lock);
    cancel_opposites(t, NULL, sig);
    // Init gets only what it has asked for (kill(2)).
    bool gone = t->id == 1 && t->signals.action[sig - 1].handler == SIG_DFL;
    // An ignored signal is kept only for a thread that waits for it, blocked.
    gone |= ignored(&t->signals, sig) && sig != SIGCONT && sig != SIGCHLD;
    if (!gone && !(t->signals.pending & SIGMASK(sig))) {
        t->signals.pending |= SIGMASK(sig);
        queue_info(&t->signals.queue, sig, info);
    }
    spin_unlock_irq(&t->signals.lock, flags);
    if (sig == SIGCONT)
        task_continue(t);
    if (!gone)
        kick_task(t, sig);
    return 0;
}

struct member_search {
    u32 pgid, after;
    struct task *best;
};

static void find_member(struct task *t, void *arg)
{
    struct member_search *s = arg;
    if (t->pgid == s->pgid && t->id > s->after && !t->zombie &&
        (!s->best || t->id < s->best->id))
        s->best = t;
}

int signal_send_pgrp(u32 pgid, int sig, const struct siginfo *info)
{
    if (sig < 0 || sig > NSIG)
        return -EINVAL;
    int result = -ESRCH;
    for (struct member_search s = { .pgid = pgid };; s.best = NULL) {
        u32 flags = spin_lock_irq(&tasks_lock);
        task_for_each_locked(find_member, &s);
        if (s.best)
            task_ref(s.best);
        spin_unlock_irq(&tasks_lock, flags);
        if (!s.best)
            return result;
        result = 0;
        s.after = s.best->id;
        signal_send_task(s.best, sig, info);
        task_unref(s.best);
    }
}

void signal_fault(int sig, int code, u32 addr)
{
    struct thread *t = current;
    struct signals *s = &t->task->signals;
    struct siginfo info = { .signo = sig, .code = code, .pid_or_addr = addr };
    u32 flags = spin_lock_irq(&s->lock);
    struct sigaction_k *a = &s->action[sig - 1];
    if ((t->blocked & SIGMASK(sig)) || a->handler == SIG_IGN) {
        a->handler = SIG_DFL; // or the same instruction would fault for ever
        WRITE_ONCE(t->blocked, t->blocked & ~SIGMASK(sig));
    }
    drop(&t->pending, &t->queue, SIGMASK(sig));
    t->pending |= SIGMASK(sig);
    queue_info(&t->queue, sig, &info);
    spin_unlock_irq(&s->lock, flags);
    WRITE_ONCE(t->signal_pending, true);
}

// --- delivery ---------------------------------------------------------------

// Takes the next deliverable signal; 0 if there is none. Faults come first:
// they belong to the instruction that the frame shows.
static int take_signal(struct siginfo *info, struct sigaction_k *action)
{
    struct thread *t = current;
    struct signals *s = &t->task->signals;
    u32 flags = spin_lock_irq(&s->lock);
    int sig = 0;
    for (;;) {
        sigset_t set = signal_deliverable();
        if (!set)
            break;
        sigset_t first = set & SIGMASK(SIGKILL);
        if (!first)
            first = t->pending & set & FAULTS;
        if (!first)
            first = set;
        sig = __builtin_ctzll(first) + 1;
        if (t->pending & SIGMASK(sig)) {
            t->pending &= ~SIGMASK(sig);
            take_info(&t->queue, sig, info);
        } else {
            s->pending &= ~SIGMASK(sig);
            take_info(&s->queue, sig, info);
        }
        *action = s->action[sig - 1];
        if (!ignored(s, sig))
            break;
        sig = 0;
    }
    if (sig && action->handler > SIG_IGN && (action->flags & SA_RESETHAND))
        s->action[sig - 1].handler = SIG_DFL;
    spin_unlock_irq(&s->lock, flags);
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
        sig = __builtin_ctzll(own) + 1;
        t->pending &= ~SIGMASK(sig);
        take_info(&t->queue, sig, info);
    } else if (shared) {
        sig = __builtin_ctzll(shared) + 1;
        s->pending &= ~SIGMASK(sig);
        take_info(&s->queue, sig, info);
    }
    spin_unlock_irq(&s->lock, flags);
    return sig;
}

// While it waits the set is unblocked, so that a sender wakes this thread.
int signal_wait_for(sigset_t set, u64 deadline, struct siginfo *info)
{
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
    t->wait_on = "sigwait";
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

// The interrupted system call is run again (its number is back in eax) or has
// failed with EINTR.
static void finish_call(struct trapframe *tf, bool restart)
{
    struct thread *t = current;
    if (!t->restart_error)
        return;
    if (restart) {
        tf->eax = t->restart_call;
        tf->eip -= 2; // int $0x80
    } else {
        tf->eax = (u32)-EINTR;
        t->restart_deadline = 0;
    }
    t->restart_error = 0;
}

// Calls the handler: builds its frame. Bad stack: the task dies.
static void run_handler(struct trapframe *tf, int sig,
                        const struct siginfo *info,
                        const struct sigaction_k *action)
{
    struct thread *t = current;
    finish_call(tf, t->restart_error == ERESTARTNOINTR ||
                        (t->restart_error == ERESTARTSYS &&
                         (action->flags & SA_RESTART)));
    sigset_t restore = t->restore_mask ? t->saved_mask : t->blocked;
    t->restore_mask = false;
    if (sigframe_push(tf, sig, info, action, restore))
        task_exit(WAIT_STATUS_SIGNALED(SIGSEGV));
    u32 flags = spin_lock_irq(&t->task->signals.lock);
    sigset_t mask = t->blocked | action->mask;
    if (!(action->flags & SA_NODEFER))
        mask |= SIGMASK(sig);
    WRITE_ONCE(t->blocked, mask & ~UNBLOCKABLE);
    spin_unlock_irq(&t->task->signals.lock, flags);
}

static bool may_stop(int sig)
{
    // Stop signals of a terminal do nothing in an orphaned group: nobody could
    // continue it. A session leader's own group is the common case of that.
    if (sig == SIGSTOP)
        return true;
    struct task *t = current_task();
    return !(t->id == t->sid);
}

void signal_deliver(struct trapframe *tf)
{
    struct thread *t = current;
    WRITE_ONCE(t->signal_pending, false);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (READ_ONCE(t->task->stopped))
        task_stop_current(t->task->stop_signal);

    for (;;) {
        if (READ_ONCE(t->must_exit))
            task_exit_thread(t->task->exit_code);
        struct siginfo info;
        struct sigaction_k action;
        int sig = take_signal(&info, &action);
        if (!sig)
            break;
        if (action.handler > SIG_IGN) {
            run_handler(tf, sig, &info, &action);
            continue;
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
        WRITE_ONCE(t->signal_pending, true); // what the old mask lets through
        spin_unlock_irq(&t->task->signals.lock, flags);
    }
}
