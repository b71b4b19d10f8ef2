// System calls: one table, include/strobe/syscalls.def.
#pragma once

#include "arch/trap.h"
#include "kernel/base/errno.h"
#include "kernel/task/syscall_table.h"

// Every handler: sys_NAME(the arguments of the table). Result or -errno.
#define SYSCALL(number, name, ...) s32 sys_##name(__VA_ARGS__);
#define SYSCALL_ARG(kind, type, name) type name
#define SYSCALL_NO_ARGS void
#include <strobe/syscalls.def>

// A task by id, the caller for 0; with a reference. NULL: there is none.
struct task *task_find_or_self(u32 id);
// The current thread's user registers (fork, sigreturn, execve need them).
struct trapframe *syscall_frame(void);
