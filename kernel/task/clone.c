// fork, vfork and clone: a new task, or a new thread of the current task.

#include "kernel/task/clone.h"

#include "arch/regs.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/file_pages.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "kernel/task/task_ids.h"
#include "kernel/task/tls.h"
#include "kernel/trace/point.h"
#include "lib/string.h"

#define THREAD_FLAGS \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)

// The accepted flags: those that are implemented, and those that have nothing
// to do here, because there is no ptrace and there are no System V semaphores
// or I/O contexts to share. Namespaces and pidfds are rejected.
#define FLAGS                                                             \
    (CSIGNAL | THREAD_FLAGS | CLONE_PTRACE | CLONE_VFORK | CLONE_PARENT | \
     CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |                 \
     CLONE_CHILD_CLEARTID | CLONE_DETACHED | CLONE_UNTRACED |             \
     CLONE_CHILD_SETTID | CLONE_IO)

static int check_flags(u32 flags)
{
    if (flags & ~FLAGS)
        return -EINVAL;
    // As on Linux, THREAD needs SIGHAND and SIGHAND needs VM. Unlike on Linux,
    // signal handlers and directory are shared only by threads of one task.
    if ((flags & CLONE_THREAD) && (flags & THREAD_FLAGS) != THREAD_FLAGS)
        return -EINVAL;
    if ((flags & (CLONE_SIGHAND | CLONE_FS)) && !(flags & CLONE_THREAD))
        return -EINVAL;
    return task_limits_check();
}

// The part of the new thread's set-up that may fail.
static int prepare(struct thread *child, const struct trapframe *tf,
                   const struct clone_args *args)
{
    int err = arch_thread_fork(child, tf);
    if (err)
        return err;
    if (args->stack)
        trap_set_user_sp(thread_trapframe(child), args->stack);
    if (args->flags & CLONE_SETTLS) {
        err = tls_set_from_user(child, args->tls);
        if (err)
            return err;
    }
    if (args->flags & CLONE_CHILD_CLEARTID)
        child->clear_tid = args->child_tid;
    return 0;
}

static void drop_unstarted(struct thread *child)
{
    child->state = THREAD_DEAD;
    thread_unref(child);
}

// Fails if the task is being killed concurrently.
static int attach_thread(struct thread *child)
{
    struct task *task = child->task;
    int err = 0;
    u32 flags = spin_lock_irq(&tasks_lock);
    if (task->exiting || current->must_exit) {
        err = -EAGAIN; // this thread is about to end
    } else {
        thread_attach(child, id_allocate());
        TRACE(task_thread, .task = task->id, .thread = child->tid);
        thread_named(child);
    }
    spin_unlock_irq(&tasks_lock, flags);
    return err;
}

// A signal to the creator's process group must not miss the child. It is sent
// to the members one after another under tasks_lock, to the creator before any
// child that is attached later. So a creator with a pending signal attaches
// nothing: it takes the signal and, if it survives, restarts the call.
static int attach_task(struct task *task, struct thread *thread,
                       struct task *creator, u32 clone_flags)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    if (creator != &kernel_task && signal_waiting()) {
        spin_unlock_irq(&tasks_lock, flags);
        return -ERESTARTNOINTR;
    }
    // The kernel itself starts only one task: init.
    u32 id = creator == &kernel_task ? INIT_ID : id_allocate();
    task_table_add(task, id);
    thread_attach(thread, id);
    struct task *parent = creator;
    task->exit_signal = clone_flags & CSIGNAL;
    if ((clone_flags & CLONE_PARENT) && creator->parent) {
        parent = creator->parent;
        // As on Linux: the exit signal that the creator's parent chose.
        task->exit_signal = creator->exit_signal;
    }
    task->parent = parent;
    task->parent_execs = parent->execs;
    task->pgid = creator->pgid ? creator->pgid : id;
    task->sid = creator->sid ? creator->sid : id;
    task->ctty = creator->ctty;
    list_push_back(&parent->children, &task->sibling);
    LINKER_SET_FOR_EACH(const struct task_observer, o, task_observers) {
        if ((*o)->forked)
            (*o)->forked(task, creator);
    }
    TRACE(task_fork, .task = creator->id, .child = id);
    spin_unlock_irq(&tasks_lock, flags);
    return 0;
}

// Destroys a task that is not attached yet: drops its resources.
static void drop_unattached(struct task *task)
{
    assert(!task->thread_count && list_empty(&task->all_node));
    if (task->aspace)
        aspace_unref(task->aspace);
    task->aspace = NULL;
    cpu_timers_end(&task->cpu_timers);
    files_unref(task->files);
    vnode_unref(task->cwd);
    vnode_unref(task->root);
    task_unref(task);
}

static void store_ids(struct thread *child, const struct clone_args *args)
{
    u32 tid = child->tid;
    // Faults are ignored, as on Linux.
    if (args->flags & CLONE_PARENT_SETTID)
        (void)!user_store_u32(args->parent_tid, tid);
    if (args->flags & CLONE_CHILD_SETTID)
        (void)!aspace_write(child->task->aspace, args->child_tid, &tid,
                            sizeof(tid));
}

static int clone_thread(const struct trapframe *tf,
                        const struct clone_args *args)
{
    struct thread *child;
    int err = thread_create(current_task(), current->name, &child);
    if (err)
        return err;
    err = prepare(child, tf, args);
    if (!err)
        err = attach_thread(child);
    if (err) {
        drop_unstarted(child);
        return err;
    }
    int tid = (int)child->tid;
    store_ids(child, args);
    thread_start(child);
    return tid;
}

// Takes the queue, which is on the parent's stack, away from the child.
static void vfork_give_up(struct task *child)
{
    u32 flags = spin_lock_irq(&child->lock);
    WRITE_ONCE(child->vfork_done, NULL);
    spin_unlock_irq(&child->lock, flags);
}

static int clone_task(const struct trapframe *tf, const struct clone_args *args)
{
    struct task *task;
    int err = task_create(current_task(), args->flags, &task);
    if (err)
        return err;
    struct thread *child;
    strlcpy(task->name, current->name, sizeof(task->name));
    err = thread_create(task, current->name, &child);
    if (!err) {
        err = prepare(child, tf, args);
        if (err)
            drop_unstarted(child);
    }
    if (err) {
        drop_unattached(task);
        return err;
    }
    if (!(args->flags & CLONE_VM)) {
        child->altstack_base = current->altstack_base;
        child->altstack_size = current->altstack_size;
    }
    struct waitq vfork_done = WAITQ_INIT(vfork_done, "vfork");
    bool vforked = args->flags & CLONE_VFORK;
    if (vforked)
        task->vfork_done = &vfork_done;
    err = attach_task(task, child, current_task(), args->flags);
    if (err) {
        drop_unstarted(child);
        drop_unattached(task);
        return err;
    }
    int id = (int)task->id;
    store_ids(child, args);
    if (vforked)
        task_ref(task);
    thread_start(child);
    if (vforked) {
        // No handler may run: the child uses this thread's user stack. If this
        // thread is killed, the stack remains in the child's address space.
        wait_event(&vfork_done, !READ_ONCE(task->vfork_done), WAIT_KILLABLE,
                   WAIT_FOREVER);
        vfork_give_up(task);
        task_unref(task);
    }
    return id;
}

int task_clone(const struct trapframe *tf, const struct clone_args *args)
{
    int err = check_flags(args->flags);
    if (err)
        return err;
    if (args->flags & CLONE_THREAD)
        return clone_thread(tf, args);
    return clone_task(tf, args);
}

// Wakes the vfork parent: the child no longer uses its memory.
void task_vfork_release(struct task *t)
{
    if (!READ_ONCE(t->vfork_done))
        return;
    u32 flags = spin_lock_irq(&t->lock);
    struct waitq *q = t->vfork_done;
    WRITE_ONCE(t->vfork_done, NULL);
    if (q) // NULL: the parent was killed before the lock was held
        waitq_wake_all(q);
    spin_unlock_irq(&t->lock, flags);
}

int task_start_init(void (*begin)(void *), void *arg)
{
    struct task *task;
    int err = task_create(&kernel_task, 0, &task);
    if (err)
        return err;
    struct thread *thread;
    err = thread_create(task, "init", &thread);
    if (err) {
        drop_unattached(task);
        return err;
    }
    arch_thread_init(thread, begin, arg);
    err = attach_task(task, thread, &kernel_task, SIGCHLD);
    thread_start(thread);
    return err;
}
