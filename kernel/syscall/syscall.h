// System calls: one table, kernel/syscall/syscalls.def.
#pragma once

#include "arch/trap.h"
#include "kernel/errno.h"
#include "kernel/time/ledger.h"

#define SYSCALL_STROBE_FIRST 1000u

// Every handler: sys_NAME(six words). Result or -errno.
typedef s32 (*syscall_fn)(u32 a, u32 b, u32 c, u32 d, u32 e, u32 f);
#define SYSCALL_HANDLER(name)                                              \
    s32 sys_##name(u32 a UNUSED, u32 b UNUSED, u32 c UNUSED, u32 d UNUSED, \
                   u32 e UNUSED, u32 f UNUSED)

// Each call's own number, in the order of the table.
enum {
    CALL_unknown, // no number of the table
#define SYSCALL(number, name, args) CALL_##name,
#include "kernel/syscall/syscalls.def"
#undef SYSCALL
    CALL_COUNT
};

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
// The same for one task, its ended threads included; `number` SYSCALL_UNKNOWN
// also has the calls for which there was no memory to tell them apart.
struct task;
void syscall_task_counts(const struct task *task, u32 number,
                         struct syscall_counts *out);
// How many calls of any number it has made.
u64 syscall_task_total(const struct task *task);
// A thread has ended, in a call or an exception that will not return: counts
// it. Interrupts off.
struct thread;
void syscall_count_last(struct thread *t);
// What the kernel time of a call is counted as; OTHER for SYSCALL_UNKNOWN.
enum subsystem syscall_subsystem(u32 number);
// The known numbers, ascending: the first one >= `number`; SYSCALL_UNKNOWN at
// the end.
u32 syscall_next(u32 number);

// A task by id, the caller for 0; with a reference. NULL: there is none.
struct task *task_find_or_self(u32 id);
// The current thread's user registers (fork, sigreturn, execve need them).
struct trapframe *syscall_frame(void);
