// The system calls that there are (include/strobe/syscalls.def), and what they
// have come to. kernel/syscall has what each does.
#pragma once

#include "arch/trap.h"
#include "kernel/time/ledger.h"

#define SYSCALL_LINUX_CALLS 512u
#define SYSCALL_STROBE_FIRST 1000u
#define SYSCALL_STROBE_CALLS 128

// Each call's own number, in the order of the table.
enum {
    CALL_unknown, // no number of the table
#define SYSCALL(number, name, ...) CALL_##name,
#include <strobe/syscalls.def>
    CALL_COUNT
};

// NULL for an unknown number.
const char *syscall_name(u32 number);

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

u32 syscall_strobe_call(u32 number);
void syscall_init_cpu(struct cpu *cpu);
// Interrupts off.
void syscall_count_error(struct thread *t, struct syscall_counts *own,
                         struct syscall_counts *all);

// A number's CALL_...; entry.S does the same.
static ALWAYS_INLINE u32 syscall_call(u32 number)
{
    if (unlikely(number >= SYSCALL_LINUX_CALLS))
        return syscall_strobe_call(number);
    return syscall_linux_calls[number];
}
