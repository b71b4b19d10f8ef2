// Exceptions, interrupts and system calls: their cost and their handlers.
#pragma once

#include "arch/regs.h"
#include "lib/set.h"

// The subsystem to which an exception's kernel time is charged (vector 0 to
// 31).
enum subsystem exception_subsystem(u32 vector);

// TSC cycles of an interrupt's entry and exit that the ledger does not charge
// to it, as measured on this CPU in the kernel, so without the ring change.
// Raises some NMIs, so there must be no NMI owner (else 0), and spurious
// interrupts. Interrupts on.
struct entry_cost {
    u32 nmi, irq;
};
struct entry_cost trap_entry_cost(void);

// Measures the cycles of entering and leaving the kernel, without the ring
// change, that user programs would be charged for, and makes the ledger charge
// them to the kernel (ledger_set_outside). Runs some system calls (getpid) in
// the current thread, which is a task's that has not been in user mode yet.
// Interrupts on.
void trap_measure_outside(void);

// Where an NMI has interrupted the code that switches between a thread's user
// and kernel time. NOT_SWITCHING, while the ledger's sequence counter is odd:
// nothing is changed yet, and the code will read the TSC again after the NMI.
// From then on it adds up, so an NMI may do so, too. SWITCHING: in other code.
enum ledger_switch { // values: entry.S
    NOT_SWITCHING,
    SWITCHING_TO_KERNEL,
    SWITCHING_TO_USER,
    SWITCHING
};
enum ledger_switch trap_interrupted_switch(struct trapframe *tf);

// A fault of the current thread. The signal is delivered even if it is blocked
// or ignored; it then kills the task. Signal numbers: kernel/base/signal.h.
UPCALL void signal_fault(int sig, int code, u32 addr);
// Out of memory: there is none for the page at `address`, which the current
// thread needs. Kills the task with the most memory (pages and page tables;
// never init, nor a task that shares init's memory), and waits until memory is
// free again. True: the caller retries. False: the current task is killed on
// its return to user mode. Thread context, interrupts on, sleeps. The caller
// may hold mutexes: a task that does not end within OOM_PATIENCE
// (kernel/task/oom.h) is given up.
UPCALL bool memory_is_out(u32 address);
// `int $0x80`, called from entry.S with the call for the number in eax. When it
// returns, the ledger's sequence counter is odd.
// Linker set of those who set breakpoints in the kernel (INT3, by
// text_patch_byte). `hit` is called with interrupts off, after the byte; false:
// the breakpoint is not its own. It continues where the frame says.
struct breakpoint_owner {
    bool (*hit)(struct trapframe *tf);
};
#define BREAKPOINT_OWNER(o) LINKER_SET_ADD(breakpoint_owners, o)

UPCALL void trap_syscall(struct trapframe *tf, u32 call);
// The call (kernel/task/syscall_table.h) for each number, below 512 and from
// 1000 on. Used by entry.S.
UPCALL extern const u8 syscall_linux_calls[];
UPCALL extern const u8 syscall_strobe_calls[];
