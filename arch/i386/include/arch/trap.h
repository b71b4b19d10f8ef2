// Exceptions, interrupts and system calls: what they cost, and who handles
// them.
#pragma once

#include "arch/regs.h"

// What the kernel time of an exception is counted as (vector 0 to 31).
enum subsystem exception_subsystem(u32 vector);

// TSC cycles that an interrupt takes beside those that the ledger books to it,
// at its entry and its exit, as measured on this CPU, in the kernel: the change
// of rings is not in it. Raises some NMIs, so no NMI user may be there (then
// 0), and spurious interrupts. Interrupts on.
struct entry_cost {
    u32 nmi, irq;
};
struct entry_cost trap_entry_cost(void);

// Measures what user programs would be charged for entering and leaving the
// kernel, the change of rings apart, and has the ledger charge it to the kernel
// (ledger_set_outside). By some system calls (getpid) of the current thread, a
// task's that has not been in user mode yet. Interrupts on.
void trap_measure_outside(void);

// A fault of the current thread: delivered even if it is blocked or ignored (it
// kills then). Signals' numbers: kernel/base/signal.h.
UPCALL void signal_fault(int sig, int code, u32 addr);
// There is no memory for what the current thread needs, the page at `address`.
// Kills the task with the most memory (pages and page tables; never init, nor a
// task that shares init's memory), and waits until memory is free again. True:
// the caller tries again. False: the current task is killed on its way to user
// mode. Thread context, interrupts on, sleeps; the caller may hold mutexes: a
// task that does not end within OOM_PATIENCE (kernel/task/oom.h) is given up.
UPCALL bool memory_is_out(u32 address);
// `int $0x80`, from entry.S, with the call that the number in eax stands for.
// The ledger is marked as changing when it returns.
UPCALL void trap_syscall(struct trapframe *tf, u32 call);
// By number, below 512 and from 1000 on: which call it is
// (kernel/task/calls.h). entry.S looks there.
UPCALL extern const u8 syscall_linux_calls[];
UPCALL extern const u8 syscall_strobe_calls[];
