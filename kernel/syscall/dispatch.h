// The way of every system call, inlined into arch's trap code.
//
// An index stands for a number in all tables: Linux's numbers for themselves,
// ours after them, and one more for every number that no call has. Counts are a
// CPU's own, written with interrupts off.
#pragma once

#include "kernel/sched/thread.h"
#include "kernel/syscall/syscall.h"

#define SYSCALL_LINUX_CALLS 512u
#define SYSCALL_STROBE_CALLS 128u
#define SYSCALL_UNKNOWN_INDEX (SYSCALL_LINUX_CALLS + SYSCALL_STROBE_CALLS)

extern const syscall_fn syscall_handlers[SYSCALL_UNKNOWN_INDEX + 1];

u32 syscall_index(u32 number);
s32 syscall_interrupted(u32 number, s32 error);
void syscall_init_cpu(struct cpu *cpu);

static ALWAYS_INLINE bool syscall_is_restart(s32 result)
{
    return (u32)(result + ERESTARTNOHAND) <= ERESTARTNOHAND - ERESTARTSYS;
}

// Runs the call; returns its index for syscall_count.
static ALWAYS_INLINE u32 syscall_dispatch(struct trapframe *tf)
{
    u32 number = tf->eax, index = number;
    if (unlikely(number >= SYSCALL_LINUX_CALLS))
        index = syscall_index(number);
    s32 result = syscall_handlers[index](tf->ebx, tf->ecx, tf->edx, tf->esi,
                                         tf->edi, tf->ebp);
    if (unlikely(syscall_is_restart(result)))
        result = syscall_interrupted(number, result);
    tf->eax = (u32)result;
    return index;
}

// Interrupts off. `before`: the thread's kernel account before it was opened
// for this call; open, it is short of the TSC by what it was opened at.
static ALWAYS_INLINE void syscall_count(u32 index, s32 result, u64 before)
{
    struct syscall_counts *c = &this_cpu()->syscalls[index];
    c->cycles += rdtsc() + current->kernel.cycles - before;
    c->count++;
    if (unlikely((u32)result >= (u32)-4095))
        c->errors++;
}
