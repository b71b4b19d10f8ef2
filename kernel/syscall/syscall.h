// System calls: one table, kernel/syscall/syscalls.def.
#pragma once

#include "arch/trap.h"
#include "kernel/errno.h"

#define SYSCALL_STROBE_FIRST 1000

// Every handler: sys_NAME(six words). Result or -errno.
typedef s32 (*syscall_fn)(u32 a, u32 b, u32 c, u32 d, u32 e, u32 f);
#define SYSCALL_HANDLER(name)                                              \
    s32 sys_##name(u32 a UNUSED, u32 b UNUSED, u32 c UNUSED, u32 d UNUSED, \
                   u32 e UNUSED, u32 f UNUSED)

struct syscall_entry {
    const char *name;
    const char *args; // kinds, one letter each; see syscalls.def
};
// NULL for an unknown number.
const struct syscall_entry *syscall_entry(u32 number);

// What a system call has come to on all CPUs since start-up; cycles are those
// of the calling thread's kernel account.
struct syscall_counts {
    u64 count, errors, cycles;
};
#define SYSCALL_UNKNOWN (~0u) // as a number: all that no entry has
void syscall_counts(u32 number, struct syscall_counts *out);
// The known numbers, ascending: the first one >= `number`; SYSCALL_UNKNOWN at
// the end.
u32 syscall_next(u32 number);

// The current thread's user registers (fork, sigreturn, execve need them).
struct trapframe *syscall_frame(void);
