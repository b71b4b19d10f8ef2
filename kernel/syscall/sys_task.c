// System calls by which tasks and threads are created, execute a program, and
// exit.

#include "arch/regs.h"
#include "kernel/mm/heap.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/clone.h"
#include "kernel/task/task.h"
#include "kernel/task/tls.h"
#include "lib/string.h"

#define PATH_BYTES 4096u

// <linux/prctl.h>
enum {
    PR_SET_PDEATHSIG = 1,
    PR_GET_PDEATHSIG = 2,
    PR_SET_NAME = 15,
    PR_GET_NAME = 16,
};

s32 sys_exit(s32 status)
{
    task_exit_thread(WAIT_STATUS_EXITED((int)status));
}

s32 sys_exit_group(s32 status)
{
    task_exit(WAIT_STATUS_EXITED((int)status));
}

s32 sys_fork(void)
{
    struct clone_args args = { .flags = SIGCHLD };
    return task_clone(syscall_frame(), &args);
}

s32 sys_vfork(void)
{
    struct clone_args args = { .flags = SIGCHLD | CLONE_VM | CLONE_VFORK };
    return task_clone(syscall_frame(), &args);
}

s32 sys_clone(u32 flags, u32 stack, u32 parent_tid, u32 tls, u32 child_tid)
{
    // i386's order: flags, stack, parent_tid, tls, child_tid (clone(2), NOTES).
    struct clone_args args = { flags, stack, parent_tid, tls, child_tid };
    return task_clone(syscall_frame(), &args);
}

s32 sys_execve(u32 program, u32 arguments, u32 environment)
{
    char *path = kmalloc(PATH_BYTES);
    if (!path)
        return -ENOMEM;
    int err = copy_string_from_user(path, program, PATH_BYTES);
    if (err == 0)
        err = -ENOENT;
    if (err > 0)
        err = task_exec(syscall_frame(), path, arguments, environment);
    kfree(path);
    // The result is the new program's, which arch_exec has set.
    return err ? err : (s32)trap_result(syscall_frame());
}

static s32 get_name(u32 user_name)
{
    char name[TASK_NAME_MAX] = "";
    strlcpy(name, current->name, sizeof(name));
    return copy_to_user(user_name, name, sizeof(name));
}

// As on Linux a longer name is cut.
static s32 set_name(u32 user_name)
{
    char name[TASK_NAME_MAX] = "";
    if (copy_string_from_user(name, user_name, sizeof(name) - 1) == -EFAULT)
        return -EFAULT;
    thread_rename(current, name);
    return 0;
}

// Sent when the parent has ended (Linux: when its thread has that called fork).
static s32 set_parent_death_signal(u32 sig)
{
    if (sig > NSIG)
        return -EINVAL;
    WRITE_ONCE(current_task()->parent_death_signal, (int)sig);
    return 0;
}

s32 sys_prctl(u32 option, u32 value)
{
    switch (option) {
    case PR_SET_PDEATHSIG:
        return set_parent_death_signal(value);
    case PR_GET_PDEATHSIG:
        return user_store_u32(
            value, (u32)READ_ONCE(current_task()->parent_death_signal));
    case PR_SET_NAME:
        return set_name(value);
    case PR_GET_NAME:
        return get_name(value);
    default:
        return -EINVAL;
    }
}

s32 sys_set_tid_address(u32 address)
{
    current->clear_tid = address;
    return (s32)current->tid;
}

s32 sys_set_thread_area(u32 descriptor)
{
    return tls_set_from_user(current, descriptor);
}

s32 sys_get_thread_area(u32 descriptor)
{
    return tls_get_to_user(descriptor);
}
