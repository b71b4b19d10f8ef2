// The end of threads and tasks.
//
// Each thread ends in task_exit_thread; the last one releases the task's
// resources. When the scheduler has switched away from it for the last time,
// thread_ended makes the task a zombie and notifies the parent.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/file_pages.h"
#include "kernel/task/futex.h"
#include "kernel/task/syscall_table.h"
#include "kernel/task/task.h"
#include "kernel/task/task_ids.h"
#include "kernel/task/usage.h"
#include "kernel/trace/point.h"

static struct task *init_task; // guarded by tasks_lock; set at the first use

static struct task *reaper(void)
{
    if (!init_task)
        init_task = task_find_locked(INIT_ID);
    return init_task;
}

// Gives init the children up to the first one that wants a signal for that
// (PR_SET_PDEATHSIG). Returns that child, with a reference; NULL: there is none
// left. Sets *ended if some are zombies, which init must be notified of.
static struct task *reparent_children(struct task *t, bool *ended)
{
    spin_assert_held(&tasks_lock);
    struct task *to = reaper();
    while (!list_empty(&t->children)) {
        struct task *child = list_first(&t->children, struct task, sibling);
        list_remove(&child->sibling);
        child->parent = to;
        child->exit_signal = SIGCHLD;
        list_push_back(&to->children, &child->sibling);
        *ended |= child->zombie;
        if (unlikely(READ_ONCE(child->parent_death_signal))) {
            task_ref(child);
            return child;
        }
    }
    return NULL;
}

// --- orphaned process groups (POSIX.1-2017, 3.264 and _exit) ----------------

struct orphan_search {
    u32 pgid, sid;
    struct task *leaving;
    bool linked, stopped;
};

static void check_member(struct task *t, void *arg)
{
    struct orphan_search *s = arg;
    if (t->pgid != s->pgid || t->zombie || t == s->leaving)
        return;
    s->stopped |= READ_ONCE(t->stopped); // guarded by signals.lock
    struct task *p = t->parent;
    if (p && p != s->leaving && p->pgid != s->pgid && p->sid == s->sid)
        s->linked = true;
}

// Whether the group will be orphaned and have stopped members when `leaving`
// has ended. Orphaned: no member has a parent that is in the same session but
// outside the group. tasks_lock held.
static bool pgrp_is_orphaned(u32 pgid, u32 sid, struct task *leaving)
{
    spin_assert_held(&tasks_lock);
    struct orphan_search s = { pgid, sid, leaving, false, false };
    task_for_each_locked(check_member, &s);
    return !s.linked && s.stopped;
}

static void release_orphaned(u32 pgid)
{
    signal_send_pgrp(pgid, SIGHUP, NULL);
    signal_send_pgrp(pgid, SIGCONT, NULL);
}

#define STRANDED_MAX 16

// The groups that the end of `t` orphans: its own and those of its children,
// STRANDED_MAX at most.
static u32 find_orphaned(struct task *t, u32 *pgids)
{
    spin_assert_held(&tasks_lock);
    u32 n = 0;
    const struct task *p = t->parent;
    bool is_link = p && p->pgid != t->pgid && p->sid == t->sid;
    if (is_link && pgrp_is_orphaned(t->pgid, t->sid, t))
        pgids[n++] = t->pgid;
    struct task *child;
    list_for_each(child, &t->children, sibling) {
        if (n == STRANDED_MAX)
            break;
        if (child->sid == t->sid && child->pgid != t->pgid &&
            pgrp_is_orphaned(child->pgid, child->sid, t))
            pgids[n++] = child->pgid;
    }
    return n;
}

// Hands the children over. Returns the groups that this orphans, as
// find_orphaned does.
static u32 leave_family(struct task *t, u32 *pgids)
{
    struct task *child;
    bool ended = false;
    u32 flags = spin_lock_irq(&tasks_lock);
    u32 n = find_orphaned(t, pgids);
    while ((child = reparent_children(t, &ended))) {
        struct siginfo info = {
            .signo = READ_ONCE(child->parent_death_signal),
            .code = SI_USER,
            .pid_or_addr = t->id,
            .uid = READ_ONCE(t->uid),
        };
        spin_unlock_irq(&tasks_lock, flags);
        signal_send_task(child, info.signo, &info);
        task_unref(child);
        flags = spin_lock_irq(&tasks_lock);
    }
    if (ended)
        waitq_wake_all(&init_task->child_wait);
    spin_unlock_irq(&tasks_lock, flags);
    if (ended)
        signal_send_task(init_task, SIGCHLD, NULL);
    return n;
}

// --- one thread -------------------------------------------------------------

static void leave_user_memory(struct thread *t)
{
    // CHILD_CLEARTID: pthread_join waits for this word (clone(2)).
    if (!t->clear_tid)
        return;
    if (!user_store_u32(t->clear_tid, 0))
        futex_wake_user(t->clear_tid, 1);
    t->clear_tid = 0;
}

static void notify_parent(struct task *t)
{
    assert(!t->zombie && !t->thread_count);
    struct siginfo info = {
        .signo = SIGCHLD,
        .code = t->exit_code & 0x7f ? 2 /* CLD_KILLED */ : 1 /* CLD_EXITED */,
        .pid_or_addr = t->id,
        .uid = t->uid,
        .status = t->exit_code & 0x7f ? t->exit_code & 0x7f
                                      : t->exit_code >> 8 & 0xff,
    };
    u32 flags = spin_lock_irq(&tasks_lock);
    struct task *parent = t->parent;
    task_ref(parent);
    // As on Linux: SIGCHLD if the parent has executed another program since.
    int sig = t->parent_execs == parent->execs ? t->exit_signal : SIGCHLD;
    // If the parent ignores its children, the task reaps itself: it is removed
    // from the tree here, so that no wait4 finds it.
    bool unwanted = sig == SIGCHLD && signal_children_unwanted(parent);
    WRITE_ONCE(t->zombie, true);
    if (unwanted) {
        struct resource_usage did;
        task_usage_family(t, &did);
        usage_add(&parent->children_usage, &did);
        list_remove(&t->sibling);
        task_table_remove(t);
    }
    spin_unlock_irq(&tasks_lock, flags);
    if (sig)
        signal_send_task(parent, sig, sig == SIGCHLD ? &info : NULL);
    waitq_wake_all(&parent->child_wait);
    task_unref(parent);
    if (unwanted)
        task_unref(t);
}

// The task's other threads have ended but may not be off their stacks yet, and
// may be scheduled concurrently: with interrupts off, the context switch reads
// the thread's `aspace` and loads that. A CPU that read the pointer before it
// was cleared has loaded the address space when all CPUs have taken an
// interrupt (smp_quiesce_others); then aspace_unref makes the CPU unload it.
static void release_memory(struct task *t)
{
    arch_end_user();
    preempt_disable();
    struct aspace *as = t->aspace;
    u32 flags = spin_lock_irq(&tasks_lock);
    task_usage_keep_peak(t);
    task_set_aspace(t, NULL);
    spin_unlock_irq(&tasks_lock, flags);
    preempt_enable();
    if (READ_ONCE(t->thread_count) > 1)
        smp_quiesce_others();
    if (as)
        aspace_unref(as);
}

// Called by the last thread: releases everything except the exit status.
static void end_task(struct task *t)
{
    assert(t == current_task() && t->exiting);
    if (t->id == INIT_ID)
        panic("init ended with status %#x", t->exit_code);
    for (u32 i = 0; i < ITIMERS; i++)
        itimer_end(&t->itimers[i]);
    cpu_timers_end(&t->cpu_timers);
    TRACE(task_exit, .task = t->id, .status = t->exit_code);
    task_vfork_release(t);
    LINKER_SET_FOR_EACH(const struct task_observer, o, task_observers) {
        if ((*o)->ended)
            (*o)->ended(t);
    }
    files_unref(t->files);
    t->files = NULL;
    if (t->ctty && t->sid == t->id)
        tty_disassociate(t->ctty, t->sid);
    vnode_unref(t->cwd);
    vnode_unref(t->root);

    release_memory(t);

    u32 pgids[STRANDED_MAX];
    u32 n = leave_family(t, pgids);
    for (u32 i = 0; i < n; i++)
        release_orphaned(pgids[i]);
    LINKER_SET_FOR_EACH(const struct task_observer, o, task_observers) {
        if ((*o)->released)
            (*o)->released(t);
    }
}

void task_exit_thread(int wait_status)
{
    assert(current_task() != &kernel_task);
    struct thread *t = current;
    struct task *task = t->task;
    irq_enable();
    leave_user_memory(t);

    u32 flags = spin_lock_irq(&tasks_lock);
    ADD_ONCE(task->threads_running, -1u);
    bool last = !task->threads_running;
    if (last && !task->exiting) {
        WRITE_ONCE(task->exiting, true);
        WRITE_ONCE(task->exit_code, wait_status);
    }
    spin_unlock_irq(&tasks_lock, flags);
    if (last)
        end_task(task);
    thread_exit();
}

// The thread that inherits a dead thread's run-time charge: another thread of
// its task or, if there is none, of the parent. NULL: none. tasks_lock held.
static struct thread *inheritor_of(const struct task *task)
{
    spin_assert_held(&tasks_lock);
    if (task == &kernel_task)
        return NULL;
    if (list_empty(&task->threads))
        task = task->parent;
    if (!task || list_empty(&task->threads))
        return NULL;
    return list_first(&task->threads, struct thread, task_node);
}

// A task becomes a zombie when its last thread has left its stack, not before:
// so all its cycles are charged when the parent is notified.
void thread_ended(struct thread *t)
{
    struct task *task = t->task;
    if (task != &kernel_task)
        syscall_count_last(t);
    u32 flags = spin_lock_irq(&tasks_lock);
    task_usage_keep(task, t);
    thread_detach(t);
    bool last = !task->thread_count;
    struct thread *inheritor = inheritor_of(task);
    if (inheritor)
        sched_inherit_charge(t, inheritor);
    waitq_wake_all(&task->child_wait); // task_kill_other_threads
    spin_unlock_irq(&tasks_lock, flags);
    if (last && task != &kernel_task)
        notify_parent(task);
    thread_unref(t);
}

// Makes all other threads of the task end before they return to user mode.
static void kill_others(struct task *task)
{
    spin_assert_held(&tasks_lock);
    struct thread *t;
    list_for_each(t, &task->threads, task_node) {
        if (t != current) {
            WRITE_ONCE(t->must_exit, true);
            signal_kick(t);
        }
    }
}

void task_exit(int wait_status)
{
    struct task *task = current_task();
    u32 flags = spin_lock_irq(&tasks_lock);
    if (!task->exiting) {
        WRITE_ONCE(task->exiting, true);
        WRITE_ONCE(task->exit_code, wait_status);
        kill_others(task);
    }
    spin_unlock_irq(&tasks_lock, flags);
    task_exit_thread(wait_status);
}

int task_kill_other_threads(void)
{
    struct task *task = current_task();
    u32 flags = spin_lock_irq(&tasks_lock);
    bool dying = task->exiting;
    if (!dying)
        kill_others(task);
    spin_unlock_irq(&tasks_lock, flags);
    if (dying)
        return -EINTR;
    wait_event(&task->child_wait, READ_ONCE(task->thread_count) == 1,
               WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
    return 0;
}
