// The way of every system call, inlined into arch's trap code.
//
// Every call has a small number of its own, in the order of syscalls.def, by
// which all tables go; 0 stands for every number that no call has.
//
// Counts are kept twice: for the machine, one table a CPU; and for the task,
// one table a thread (task_calls.h). Both are written with interrupts off.
#pragma once

#include "arch/regs.h"
#include "kernel/sched/thread.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/task_calls.h"

// Called with six words, of which a handler takes as many as it has arguments.
typedef void (*syscall_fn)(void);
extern const syscall_fn syscall_handlers[CALL_COUNT];
// What the program gets, where a handler has returned an error.
s32 syscall_failed(u32 number, s32 error);
// The handler may use its arguments' memory as it likes: it gets copies.
static ALWAYS_INLINE s32 syscall_invoke(const struct trapframe *tf, u32 call)
{
    s32 result;
    __asm__ volatile("pushl 20(%[tf])\n\t"
                     "pushl 16(%[tf])\n\t"
                     "pushl 12(%[tf])\n\t"
                     "movl 8(%[tf]), %%ecx\n\t"
                     "movl 4(%[tf]), %%edx\n\t"
                     "movl (%[tf]), %%eax\n\t"
                     "call *syscall_handlers(, %[call], 4)\n\t"
                     "addl $12, %%esp"
                     : "=&a"(result)
                     : [tf] "r"(tf), [call] "r"(call)
                     : "ecx", "edx", "cc", "memory");
    return result;
}
_Static_assert(offsetof(struct trapframe, ebp) == 20, "six arguments");

static ALWAYS_INLINE void syscall_run(struct trapframe *tf, u32 call)
{
    s32 result = syscall_invoke(tf, call);
    if (unlikely((u32)result >= (u32)-ERRNO_MAX))
        result = syscall_failed(trap_call(tf), result);
    trap_set_result(tf, (u32)result);
}

// Counts the call that ends; the ledger is marked as changing then, for
// entry.S to go on with. Interrupts are off.
static ALWAYS_INLINE void syscall_leave(struct thread *t, u32 call)
{
    struct syscall_counts *own = syscall_own_counts(t, call);
    struct syscall_counts *all = &this_cpu_read(syscalls)[call];
    u32 ledger;
    if (unlikely(t->call_failed))
        syscall_count_error(t, own, all);
    __asm__ volatile(
        LEDGER_LEAVE(LEDGER_UNCOUNTED "addl %%eax, %c[cycles](%[own])\n\t"
                                      "adcl %%edx, 4+%c[cycles](%[own])\n\t"
                                      "addl %%eax, %c[cycles](%[all])\n\t"
                                      "adcl %%edx, 4+%c[cycles](%[all])\n\t"
                                      "addl $1, %c[count](%[own])\n\t"
                                      "adcl $0, 4+%c[count](%[own])\n\t"
                                      "addl $1, %c[count](%[all])\n\t"
                                      "adcl $0, 4+%c[count](%[all])")
        : [ledger] "=&r"(ledger)
        : [thread] "r"(&t->total), [own] "r"(own), [all] "r"(all),
          LEDGER_OF_CPU, [count] "i"(offsetof(struct syscall_counts, count)),
          [cycles] "i"(offsetof(struct syscall_counts, cycles))
        : "eax", "edx", "cc", "memory");
}
