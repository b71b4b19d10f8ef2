// Job control: which session owns a terminal, and which of its process groups
// may use it now.
//
// A session owns a terminal while tty->session is its id. A task's `ctty` is
// valid only then: when the session loses its terminal, the tasks that still
// point to it need not be found. Locks: tasks_lock before tty->lock; signals
// are sent with neither held.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/tty_private.h"
#include "kernel/task/signal.h"
#include "kernel/task/task.h"

struct ownership_locks {
    u32 tasks_flags, tty_flags;
};

static struct ownership_locks lock_ownership(struct tty *t)
{
    struct ownership_locks locks;
    locks.tasks_flags = spin_lock_irq(&tasks_lock);
    locks.tty_flags = spin_lock_irq(&t->lock);
    return locks;
}

static void unlock_ownership(struct tty *t, struct ownership_locks locks)
{
    spin_unlock_irq(&t->lock, locks.tty_flags);
    spin_unlock_irq(&tasks_lock, locks.tasks_flags);
}

// Two marked reads of words that change concurrently: a caller that races with
// the loss of the terminal takes effect just before it.
static struct tty *controlling_tty_of(const struct task *task)
{
    struct tty *t = READ_ONCE(task->ctty);
    return t != NULL && READ_ONCE(t->session) == READ_ONCE(task->sid) ? t
                                                                      : NULL;
}

struct tty *jobs_controlling_tty(void)
{
    return controlling_tty_of(current_task());
}

int jobs_acquire(struct tty *t, bool steal)
{
    struct task *task = current_task();
    struct ownership_locks locks = lock_ownership(t);
    struct tty *now = controlling_tty_of(task);
    int err = 0;
    if (now == t && task->id == task->sid) {
        // The task owns it already.
    } else if (task->id != task->sid || now ||
               (t->session != 0 && (!steal || !is_root()))) {
        err = -EPERM;
    } else {
        WRITE_ONCE(t->session, task->sid);
        WRITE_ONCE(t->pgrp, task->pgid);
        WRITE_ONCE(task->ctty, t);
    }
    unlock_ownership(t, locks);
    return err;
}

// Marks open files dead and resets the terminal. t->lock is held.
static void hang_up(struct tty *t)
{
    spin_assert_held(&t->lock);
    struct termios_k old = t->termios;

    ADD_ONCE(t->hangups, 1);
    ldisc_flush_input(t);
    ldisc_init(t);
    ldisc_modes_changed(t, &old);
    tty_output_stop(t, false);
    waitq_wake_all(&t->read_wait);
    waitq_wake_all(&t->write_wait);
}

// The session `sid` gives up the terminal, if it owns it.
static void release_terminal(struct tty *t, u32 sid, bool hanging_up)
{
    assert(sid);
    struct ownership_locks locks = lock_ownership(t);
    bool ours = sid != 0 && t->session == sid;
    u32 pgrp = ours ? t->pgrp : 0;

    if (ours) {
        WRITE_ONCE(t->session, 0);
        WRITE_ONCE(t->pgrp, 0);
        if (hanging_up)
            hang_up(t);
    }
    unlock_ownership(t, locks);
    if (pgrp != 0) {
        signal_send_pgrp(pgrp, SIGHUP, NULL);
        signal_send_pgrp(pgrp, SIGCONT, NULL);
    }
}

void tty_disassociate(struct tty *t, u32 sid)
{
    release_terminal(t, sid, true);
}

int jobs_release(struct tty *t)
{
    struct task *task = current_task();
    u32 flags;
    if (controlling_tty_of(task) != t)
        return -ENOTTY;
    if (task->id == READ_ONCE(task->sid))
        release_terminal(t, task->id, false);
    flags = spin_lock_irq(&tasks_lock);
    WRITE_ONCE(task->ctty, NULL);
    spin_unlock_irq(&tasks_lock, flags);
    return 0;
}

struct task_search {
    bool (*matches)(const struct task *task, u32 id);
    u32 id;
    bool found;
};

static void match_task(struct task *task, void *arg)
{
    spin_assert_held(&tasks_lock);
    struct task_search *search = arg;

    search->found = search->found || search->matches(task, search->id);
}

static bool any_task(bool (*matches)(const struct task *task, u32 id), u32 id)
{
    struct task_search search = { matches, id, false };
    u32 flags = spin_lock_irq(&tasks_lock);
    task_for_each_locked(match_task, &search);
    spin_unlock_irq(&tasks_lock, flags);
    return search.found;
}

// Orphaned process groups: a member whose parent is in the same session but in
// another group keeps its group from being orphaned.
static bool anchors_group(const struct task *task, u32 pgid)
{
    spin_assert_held(&tasks_lock);
    const struct task *parent = task->parent;

    return task->pgid == pgid && !task->zombie && parent &&
           parent->pgid != pgid && parent->sid == task->sid;
}

int jobs_check(struct tty *t, int sig)
{
    assert(sig == SIGTTIN || sig == SIGTTOU);
    struct task *task = current_task();
    u32 pgrp = READ_ONCE(t->pgrp);
    u32 pgid = READ_ONCE(task->pgid);

    if (pgrp == pgid || pgrp == 0 || controlling_tty_of(task) != t)
        return 0;
    if (signal_ignored_or_blocked(sig))
        return sig == SIGTTIN ? -EIO : 0;
    if (!any_task(anchors_group, pgid))
        return -EIO;
    signal_send_pgrp(pgid, sig, NULL);
    return -ERESTARTSYS;
}

int jobs_get_pgrp(struct tty *t, u32 *pgrp)
{
    if (jobs_controlling_tty() != t)
        return -ENOTTY;
    *pgrp = READ_ONCE(t->pgrp);
    return 0;
}

static bool is_group(const struct task *task, u32 pgid)
{
    spin_assert_held(&tasks_lock);
    return task->pgid == pgid;
}

static bool is_our_group(const struct task *task, u32 pgid)
{
    spin_assert_held(&tasks_lock);
    return task->pgid == pgid && task->sid == current_task()->sid;
}

int jobs_set_pgrp(struct tty *t, s32 pgrp)
{
    struct ownership_locks locks;
    int err = jobs_check(t, SIGTTOU);
    if (err)
        return err;
    if (jobs_controlling_tty() != t)
        return -ENOTTY;
    if (pgrp <= 0)
        return -EINVAL;
    if (!any_task(is_our_group, pgrp))
        return any_task(is_group, pgrp) ? -EPERM : -ESRCH;

    locks = lock_ownership(t);
    if (controlling_tty_of(current_task()) == t)
        WRITE_ONCE(t->pgrp, pgrp);
    else
        err = -ENOTTY;
    unlock_ownership(t, locks);
    return err;
}

int jobs_get_session(struct tty *t, u32 *sid)
{
    if (jobs_controlling_tty() != t)
        return -ENOTTY;
    *sid = READ_ONCE(t->session);
    return 0;
}

void jobs_signal(struct tty *t, int sig)
{
    assert(sig >= 1 && sig <= NSIG);
    u32 pgrp = READ_ONCE(t->pgrp);

    if (pgrp != 0)
        signal_send_pgrp(pgrp, sig, NULL);
}
