// What the CPU and the entry code leave on the kernel stack, and who handles
// it.
#pragma once

#include "lib/types.h"

// In the order of arch/i386/cpu/entry.S. esp and ss are there only when the
// interrupted code was a user program's (trap_from_user).
struct trapframe {
    u32 ebx, ecx, edx, esi, edi, ebp, eax;
    u32 ds, es, fs;
    u32 vector; // for a system call: its number (for restarting)
    u32 error;
    u32 eip, cs, eflags;
    u32 esp, ss;
};
_Static_assert(offsetof(struct trapframe, ds) == 28 &&
                   offsetof(struct trapframe, vector) == 40 &&
                   offsetof(struct trapframe, eip) == 48 &&
                   sizeof(struct trapframe) == 68,
               "entry.S");

#define KERNEL_CS 0x60
#define KERNEL_DS 0x68
#define USER_CS 0x73
#define USER_DS 0x7b
#define PERCPU_SEL 0xd8
#define TSS_SEL 0x80
#define DOUBLE_FAULT_SEL 0xf8
#define GDT_TLS_FIRST 6 // three entries for set_thread_area: 6, 7, 8
#define GDT_TLS_COUNT 3
#define GDT_ENTRIES 32
_Static_assert(DOUBLE_FAULT_SEL / 8 < GDT_ENTRIES &&
                   PERCPU_SEL / 8 < GDT_ENTRIES,
               "selectors of the GDT");
_Static_assert((KERNEL_CS & 3) == 0 && (KERNEL_DS & 3) == 0 &&
                   (USER_CS & 3) == 3 && (USER_DS & 3) == 3,
               "privilege levels");

#define EFLAGS_IF 0x200
#define EFLAGS_TF 0x100
#define EFLAGS_DF 0x400

#define VECTOR_NMI 2
#define VECTOR_DOUBLE_FAULT 8
#define VECTOR_PAGE_FAULT 14
#define VECTOR_SYSCALL 0x80

// `error` of a frame that a system call left; no exception's is the same.
#define TRAP_SYSCALL_MARK 0xffffffffu

static inline bool trap_is_syscall(const struct trapframe *tf)
{
    return tf->error == TRAP_SYSCALL_MARK;
}
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

static inline bool trap_from_user(const struct trapframe *tf)
{
    return tf->cs & 3;
}

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
