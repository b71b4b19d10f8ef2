// The table of system calls (include/strobe/syscalls.def) and their statistics.
// The calls are implemented in kernel/syscall.
#pragma once

#include "arch/trap.h"
#include "kernel/time/ledger.h"

#define SYSCALL_LINUX_CALLS 512u
#define SYSCALL_STROBE_FIRST 1000u
#define SYSCALL_STROBE_CALLS 128

// Dense call numbers, in the order of the table.
enum {
    CALL_unknown, // a number that is not in the table
#define SYSCALL(number, name, ...) CALL_##name,
#include <strobe/syscalls.def>
    CALL_COUNT
};

// NULL for an unknown number.
const char *syscall_name(u32 number);

// Statistics of a system call on all CPUs since start-up. `cycles` are TSC
// cycles of the calling threads' kernel accounts.
struct syscall_counts {
    u64 count, errors, cycles;
};
#define SYSCALL_UNKNOWN (~0u) // as a number: all numbers not in the table
void syscall_counts(u32 number, struct syscall_counts *out);
// The same for one task, including its ended threads. SYSCALL_UNKNOWN also
// includes calls that could not be counted separately for lack of memory.
struct task;
void syscall_task_counts(const struct task *task, u32 number,
                         struct syscall_counts *out);
// The number of all calls that the task made.
u64 syscall_task_total(const struct task *task);
// Counts the call or exception in which a thread ended, which does not return.
// Interrupts off.
struct thread;
void syscall_count_last(struct thread *t);
// The subsystem to which a call's kernel time is charged; IN_OTHER for
// SYSCALL_UNKNOWN.
enum subsystem syscall_subsystem(u32 number);
// Iterates over the known numbers: the first one >= `number`; SYSCALL_UNKNOWN
// at the end.
u32 syscall_next(u32 number);

u32 syscall_strobe_call(u32 number);
void syscall_init_cpu(struct cpu *cpu);
// Interrupts off.
void syscall_count_error(struct thread *t, struct syscall_counts *own,
                         struct syscall_counts *all);

// The CALL_... of a number. entry.S contains a copy of this.
static ALWAYS_INLINE u32 syscall_call(u32 number)
{
    if (unlikely(number >= SYSCALL_LINUX_CALLS))
        return syscall_strobe_call(number);
    return syscall_linux_calls[number];
}
