// The path of every system call, inlined into arch's trap code.
//
// Every call has a small number of its own, in the order of syscalls.def, which
// is the index of all tables; 0 is for all numbers without a call.
//
// Counts are kept twice: for the machine, one table a CPU; and for the task,
// one table a thread (task_syscalls.h). Both are written with interrupts off.
#pragma once

#include "arch/regs.h"
#include "kernel/sched/thread.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/task_syscalls.h"

extern const trap_call_fn syscall_handlers[CALL_COUNT];
// The program's result when a handler has returned an error.
s32 syscall_failed(u32 number, s32 error);

static ALWAYS_INLINE void syscall_run(struct trapframe *tf, u32 call)
{
    s32 result = trap_invoke(tf, syscall_handlers[call]);
    if (unlikely((u32)result >= (u32)-ERRNO_MAX))
        result = syscall_failed(trap_call(tf), result);
    trap_set_result(tf, (u32)result);
}

// Counts the ending call. The ledger is left marked as changing; entry.S
// completes the change. Interrupts are off.
static ALWAYS_INLINE void syscall_leave(struct thread *t, u32 call)
{
    struct syscall_counts *own = syscall_own_counts(t, call);
    struct syscall_counts *all = &this_cpu_read(syscalls)[call];
    if (unlikely(t->call_failed))
        syscall_count_error(t, own, all);
    u64 had = ledger_leave_begin(this_ledger(), thread_base(t));
    u64 cycles = ledger_uncounted(thread_base(t), had);
    account_add(&own->cycles, cycles);
    account_add(&all->cycles, cycles);
    account_add_u32(&own->count, 1);
    account_add_u32(&all->count, 1);
}
