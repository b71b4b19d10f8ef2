// Signals: queues of pending signals, and their effects. Sending:
// signal_send.c; delivery: signal_deliver.c; the frame on the user's stack:
// arch/i386/cpu/sigframe.c.
//
// signals.lock (interrupt-disabling) guards a task's actions and pending set
// and its threads' pending and blocked sets. thread->signal_pending is a hint
// that the return to user mode reads without a lock: it is set after any change
// that may make a signal deliverable, and cleared by the thread itself before
// it checks its signals.

#include "arch/sigframe.h"
#include "kernel/task/signal_private.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "kernel/task/users.h"
#include "lib/string.h"

#define IGNORED_BY_DEFAULT \
    (SIGMASK(SIGCHLD) | SIGMASK(SIGURG) | SIGMASK(SIGWINCH) | SIGMASK(SIGCONT))

struct queued_signal {
    struct siginfo info;
    struct payer *payer;
    struct queued_signal *next; // circular list of signals of this number
};
#define CHARGE sizeof(struct queued_signal)
SLAB_CACHE(queued_signal_cache, struct queued_signal);

// --- queues -----------------------------------------------------------------

// Signals that queue are charged to the receiver's user: they can be many.
static struct queued_signal *queued_new(int sig, u32 uid)
{
    struct payer *payer = NULL;
    if (signal_queues(sig) && !user_charge(uid, CHARGE, &payer))
        return NULL;
    struct queued_signal *s = slab_alloc(&queued_signal_cache);
    if (s)
        s->payer = payer;
    else
        user_discharge(payer, CHARGE);
    return s;
}

static void queued_free(struct queued_signal *s)
{
    user_discharge(s->payer, CHARGE);
    slab_free(&queued_signal_cache, s);
}

int signal_queue_put(struct siginfo_queue *q, int sig,
                     const struct siginfo *info, u32 limit, u32 uid)
{
    assert_checked(sig >= 1 && sig <= NSIG);
    struct queued_signal *last = q->last[sig - 1];
    if (!info || (last && !signal_queues(sig)))
        return 0;
    struct queued_signal *s = q->kept < limit ? queued_new(sig, uid) : NULL;
    if (!s)
        return -EAGAIN;
    s->info = *info;
    s->next = s;
    if (last) {
        s->next = last->next;
        last->next = s;
    }
    q->last[sig - 1] = s;
    q->kept++;
    return 0;
}

bool signal_queue_take(struct siginfo_queue *q, int sig, struct siginfo *out)
{
    assert_checked(sig >= 1 && sig <= NSIG);
    struct queued_signal *last = q->last[sig - 1];
    if (!last) {
        *out = (struct siginfo){ .signo = sig, .code = SI_USER };
        return false;
    }
    struct queued_signal *first = last->next;
    assert_checked(q->kept);
    q->kept--;
    *out = first->info;
    out->signo = sig;
    last->next = first->next;
    if (first == last)
        q->last[sig - 1] = NULL;
    queued_free(first);
    return first != last;
}

void signal_drop(sigset_t *pending, struct siginfo_queue *q, sigset_t mask)
{
    sigset_t gone = *pending & mask;
    *pending &= ~mask;
    for (; gone; gone &= gone - 1) {
        struct siginfo ignored;
        while (signal_queue_take(q, signal_lowest(gone), &ignored))
            ;
    }
}

void signal_queue_clear(struct siginfo_queue *q)
{
    for (int sig = 1; q->kept; sig++) {
        assert_checked(sig <= NSIG);
        struct siginfo ignored;
        while (signal_queue_take(q, sig, &ignored))
            ;
    }
}

// --- effect of a signal -----------------------------------------------------

bool signal_ignored(const struct signals *s, int sig)
{
    spin_assert_held(&s->lock);
    assert_checked(sig >= 1 && sig <= NSIG);
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

bool signal_children_stop_quietly(struct task *t)
{
    u32 flags = spin_lock_irq(&t->signals.lock);
    bool quietly = t->signals.action[SIGCHLD - 1].flags & SA_NOCLDSTOP;
    spin_unlock_irq(&t->signals.lock, flags);
    return quietly;
}

sigset_t signal_deliverable(void)
{
    spin_assert_held(&current->task->signals.lock);
    return deliverable(current);
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
    sigset_t set = deliverable(t);
    while (set && signal_ignored(s, signal_lowest(set)))
        set &= set - 1;
    spin_unlock_irq(&s->lock, flags);
    return set != 0;
}

static bool ends_task(const struct signals *s, int sig)
{
    sigset_t spared = IGNORED_BY_DEFAULT | STOP_SIGNALS | SIGMASK(SIGCONT);
    return s->action[sig - 1].handler == SIG_DFL && !(SIGMASK(sig) & spared);
}

bool signal_fatal(void)
{
    struct thread *t = current;
    if (likely(!READ_ONCE(t->signal_pending)))
        return false;
    if (READ_ONCE(t->must_exit))
        return true;
    struct signals *s = &t->task->signals;
    u32 flags = spin_lock_irq(&s->lock);
    sigset_t set = deliverable(t);
    while (set && !ends_task(s, signal_lowest(set)))
        set &= set - 1;
    spin_unlock_irq(&s->lock, flags);
    return set != 0;
}

bool signal_ignored_or_blocked(int sig)
{
    assert_checked(sig >= 1 && sig <= NSIG);
    struct signals *s = &current_task()->signals;
    u32 flags = spin_lock_irq(&s->lock);
    bool yes = (current->blocked & SIGMASK(sig)) ||
               s->action[sig - 1].handler == SIG_IGN;
    spin_unlock_irq(&s->lock, flags);
    return yes;
}

bool signal_would_be_lost(struct task *t, const struct thread *to, int sig)
{
    assert_checked(sig >= 1 && sig <= NSIG);
    u32 flags = spin_lock_irq(&t->signals.lock);
    sigset_t pending = to ? to->pending : t->signals.pending;
    bool lost = (pending & SIGMASK(sig)) || signal_ignored(&t->signals, sig);
    spin_unlock_irq(&t->signals.lock, flags);
    return lost;
}

bool signal_is_ignored(int sig)
{
    struct signals *s = &current_task()->signals;
    u32 flags = spin_lock_irq(&s->lock);
    bool yes = signal_ignored(s, sig);
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
    WRITE_ONCE(t->signal_pending, true); // check again with the new mask
}

NOTRACE void signal_restore_mask(sigset_t mask)
{
    struct thread *t = current;
    u32 flags = spin_lock_irq(&t->task->signals.lock);
    WRITE_ONCE(t->blocked, mask & ~(SIGMASK(SIGKILL) | SIGMASK(SIGSTOP)));
    if (signal_deliverable())
        WRITE_ONCE(t->signal_pending, true);
    spin_unlock_irq(&t->task->signals.lock, flags);
}
