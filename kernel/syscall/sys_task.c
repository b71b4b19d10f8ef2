// System calls by which tasks and threads begin, go on as another program, and
// end.

#include "kernel/mm/heap.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/clone.h"
#include "kernel/task/task.h"
#include "kernel/task/tls.h"

#define PATH_BYTES 4096u

SYSCALL_HANDLER(exit)
{
    task_exit_thread(WAIT_STATUS_EXITED((int)a));
}

SYSCALL_HANDLER(exit_group)
{
    task_exit(WAIT_STATUS_EXITED((int)a));
}

SYSCALL_HANDLER(fork)
{
    struct clone_args args = { .flags = SIGCHLD };
    return task_clone(syscall_frame(), &args);
}

SYSCALL_HANDLER(vfork)
{
    struct clone_args args = { .flags = SIGCHLD | CLONE_VM | CLONE_VFORK };
    return task_clone(syscall_frame(), &args);
}

SYSCALL_HANDLER(clone)
{
    // i386's order: flags, stack, parent_tid, tls, child_tid (clone(2), NOTES).
    struct clone_args args = { a, b, c, d, e };
    return task_clone(syscall_frame(), &args);
}

SYSCALL_HANDLER(execve)
{
    char *path = kmalloc(PATH_BYTES);
    if (!path)
        return -ENOMEM;
    int err = copy_string_from_user(path, a, PATH_BYTES);
    if (err == 0)
        err = -ENOENT;
    if (err > 0)
        err = task_exec(syscall_frame(), path, b, c);
    kfree(path);
    // The call's result is the new program's eax: arch_exec has set it.
    return err ? err : (s32)syscall_frame()->eax;
}

SYSCALL_HANDLER(set_tid_address)
{
    current->clear_tid = a;
    return (s32)current->tid;
}

SYSCALL_HANDLER(set_thread_area)
{
    return tls_set_from_user(current, a);
}

SYSCALL_HANDLER(get_thread_area)
{
    return tls_get_to_user(a);
}
