// wait4 and waitid; job control: stopping and continuing tasks.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/task/task.h"
#include "kernel/task/task_ids.h"

#define CLD_EXITED 1
#define CLD_KILLED 2
#define CLD_STOPPED 5
#define CLD_CONTINUED 6

static bool matches(const struct task *child, enum wait_scope scope, u32 id,
                    u32 options)
{
    spin_assert_held(&tasks_lock);
    bool other_signal = child->exit_signal != SIGCHLD;
    if (!(options & WALL) && other_signal != !!(options & WCLONE))
        return false;
    if (scope == WAIT_TASK)
        return child->id == id;
    return scope == WAIT_ANY || child->pgid == id;
}

// Whether this child has a status to report. Consumes the report, except with
// WNOWAIT.
static bool take_report(struct task *child, u32 options,
                        struct wait_result *out)
{
    spin_assert_held(&tasks_lock);
    bool keep = options & WNOWAIT;
    if (child->zombie) {
        if (!(options & WEXITED))
            return false;
        out->status = child->exit_code;
        out->code = child->exit_code & 0x7f ? CLD_KILLED : CLD_EXITED;
        return true;
    }
    u32 flags = spin_lock_irq(&child->signals.lock);
    bool found = false;
    if ((options & WUNTRACED) && child->stopped && !child->stop_reported) {
        child->stop_reported = !keep;
        out->status = WAIT_STATUS_STOPPED(child->stop_signal);
        out->code = CLD_STOPPED;
        found = true;
    } else if ((options & WCONTINUED) && child->continued) {
        child->continued = keep;
        out->status = WAIT_STATUS_CONTINUED;
        out->code = CLD_CONTINUED;
        found = true;
    }
    spin_unlock_irq(&child->signals.lock, flags);
    return found;
}

// Removes a zombie from tree and table, and adds its usage to the parent's. The
// task itself remains while it is referenced.
static void reap(struct task *child, const struct wait_result *out)
{
    spin_assert_held(&tasks_lock);
    assert(child->zombie);
    struct task *parent = current_task();
    usage_add(&parent->children_usage, &out->used);
    list_remove(&child->sibling);
    task_table_remove(child);
}

// Checks all children once: an id, 0 (nothing to report yet) or -ECHILD.
static int find_child(enum wait_scope scope, u32 id, u32 options,
                      struct wait_result *out)
{
    struct task *parent = current_task(), *child, *dead = NULL;
    int result = -ECHILD;
    u32 flags = spin_lock_irq(&tasks_lock);
    list_for_each(child, &parent->children, sibling) {
        if (!matches(child, scope, id, options))
            continue;
        result = 0;
        if (!take_report(child, options, out))
            continue;
        out->id = child->id;
        task_usage_family(child, &out->used);
        result = (int)child->id;
        if (child->zombie && !(options & WNOWAIT)) {
            reap(child, out);
            dead = child;
        }
        break;
    }
    spin_unlock_irq(&tasks_lock, flags);
    if (dead)
        task_unref(dead);
    return result;
}

int task_wait(enum wait_scope scope, u32 id, u32 options,
              struct wait_result *out)
{
    *out = (struct wait_result){ 0 };
    int found = 0;
    int err = wait_event(&current_task()->child_wait,
                         (found = find_child(scope, id, options, out)) ||
                             (options & WNOHANG),
                         WAIT_INTERRUPTIBLE, WAIT_FOREVER);
    return err == -EINTR ? -ERESTARTSYS : found;
}

// --- job control ------------------------------------------------------------

static void notify_parent_of_stop(struct task *t, int code, int status)
{
    struct siginfo info = { .signo = SIGCHLD,
                            .code = code,
                            .pid_or_addr = t->id,
                            .uid = READ_ONCE(t->uid),
                            .status = status };
    u32 flags = spin_lock_irq(&tasks_lock);
    struct task *parent = t->parent;
    task_ref(parent);
    spin_unlock_irq(&tasks_lock, flags);
    if (!signal_children_stop_quietly(parent))
        signal_send_task(parent, SIGCHLD, &info);
    waitq_wake_all(&parent->child_wait);
    task_unref(parent);
}

static bool is_killed(void)
{
    struct signals *s = &current_task()->signals;
    if (READ_ONCE(current->must_exit))
        return true;
    u32 flags = spin_lock_irq(&s->lock);
    bool killed = signal_deliverable() & SIGMASK(SIGKILL);
    spin_unlock_irq(&s->lock, flags);
    return killed;
}

void task_stop_current(int sig)
{
    assert(irqs_enabled());
    struct task *t = current_task();
    u32 flags = spin_lock_irq(&t->signals.lock);
    bool first = !t->stopped;
    if (first) {
        // The task's other threads read both without the lock.
        WRITE_ONCE(t->stop_signal, sig);
        WRITE_ONCE(t->stopped, true);
        t->stop_reported = t->continued = false;
    }
    spin_unlock_irq(&t->signals.lock, flags);
    if (first) {
        // The task's other threads stop when they next check their signals.
        flags = spin_lock_irq(&tasks_lock);
        struct thread *th;
        list_for_each(th, &t->threads, task_node) {
            if (th != current) {
                WRITE_ONCE(th->signal_pending, true);
                thread_wake_signal(th, false);
            }
        }
        spin_unlock_irq(&tasks_lock, flags);
        notify_parent_of_stop(t, CLD_STOPPED, sig);
    }
    while (READ_ONCE(t->stopped)) {
        __atomic_store_n(&current->state, THREAD_STOPPED, __ATOMIC_SEQ_CST);
        bool killed = is_killed();
        if (READ_ONCE(t->stopped) && !killed)
            schedule();
        __atomic_store_n(&current->state, THREAD_RUNNING, __ATOMIC_SEQ_CST);
        if (killed)
            break;
    }
}

void task_continue(struct task *t)
{
    u32 flags = spin_lock_irq(&t->signals.lock);
    bool was = t->stopped;
    WRITE_ONCE(t->stopped, false);
    if (was)
        t->continued = true;
    spin_unlock_irq(&t->signals.lock, flags);
    if (!was)
        return;
    flags = spin_lock_irq(&tasks_lock);
    struct thread *th;
    list_for_each(th, &t->threads, task_node)
        thread_wake_signal(th, true);
    spin_unlock_irq(&tasks_lock, flags);
    notify_parent_of_stop(t, CLD_CONTINUED, SIGCONT);
}
