// System calls: one table, include/strobe/syscalls.def.
#pragma once

#include "arch/trap.h"
#include "kernel/base/errno.h"
#include "kernel/task/calls.h"

// Every handler: sys_NAME(six words). Result or -errno.
typedef s32 (*syscall_fn)(u32 a, u32 b, u32 c, u32 d, u32 e, u32 f);
#define SYSCALL_HANDLER(name)                                              \
    s32 sys_##name(u32 a UNUSED, u32 b UNUSED, u32 c UNUSED, u32 d UNUSED, \
                   u32 e UNUSED, u32 f UNUSED)

// A task by id, the caller for 0; with a reference. NULL: there is none.
struct task *task_find_or_self(u32 id);
// The current thread's user registers (fork, sigreturn, execve need them).
struct trapframe *syscall_frame(void);
