// The ledger: on every CPU exactly one account is open at any moment. Each
// change reads the TSC once and charges the account that closes, so on each CPU
// the sum of all accounts is the TSC time since its ledger began, to the cycle.
//
// How: an account is opened by subtracting the TSC from it and closed by adding
// the TSC to it. While it is open it therefore reads too low by the TSC of now,
// and over all accounts of a CPU the sum is always TSC(now) - TSC(began): the
// books balance by construction, whatever is opened when.
//
// Only the CPU that has an account open writes it. An NMI that switches there
// and back in the middle of a switch does no harm: both halves of a 64-bit
// addition may be interrupted, for the carry lives in the flags that the NMI
// saves, and each addition the NMI makes is complete in itself.
//
// `seq` is odd while a switch is under way: other CPUs read again.
#pragma once

#include "arch/cpu.h"

struct account {
    u64 cycles;
};

// One a CPU. Vector accounts: interrupts 0x20-0xff.
struct ledger {
    struct account *open; // these four offsets are known to the assembly below
    u32 seq;
    // What threads had on this CPU, by mode: each is open while an account of
    // its mode is. With idle, start_up and the vectors they sum to the elapsed
    // time; and over all CPUs to what the threads' own accounts say.
    u64 user, kernel;
    u64 began;
    struct account idle;
    struct account start_up; // before the first thread runs
    struct account vectors[256];
};

void ledger_init_cpu(struct cpu *cpu);

static ALWAYS_INLINE struct ledger *this_ledger(void)
{
    struct ledger *l;
    __asm__ volatile("movl %%fs:%c1, %0"
                     : "=r"(l)
                     : "i"(offsetof(struct cpu, ledger)));
    return l;
}

// Closes the open account of `l`, opens `next`, and does `TOTALS` with the TSC
// in edx:eax.
#define LEDGER_MOVE(l, next_account, TOTALS)                     \
    __asm__ volatile("incl 4(%[ledger])\n\t"                     \
                     "movl (%[ledger]), %%ecx\n\t"               \
                     "rdtsc\n\t"                                 \
                     "addl %%eax, (%%ecx)\n\t"                   \
                     "adcl %%edx, 4(%%ecx)\n\t" TOTALS           \
                     "subl %%eax, (%[next])\n\t"                 \
                     "sbbl %%edx, 4(%[next])\n\t"                \
                     "movl %[next], (%[ledger])\n\t"             \
                     "incl 4(%[ledger])"                         \
                     :                                           \
                     : [ledger] "r"(l), [next] "r"(next_account) \
                     : "eax", "ecx", "edx", "cc", "memory")

#define CLOSE_USER "addl %%eax, 8(%[ledger])\n\tadcl %%edx, 12(%[ledger])\n\t"
#define OPEN_USER "subl %%eax, 8(%[ledger])\n\tsbbl %%edx, 12(%[ledger])\n\t"
#define CLOSE_KERNEL \
    "addl %%eax, 16(%[ledger])\n\tadcl %%edx, 20(%[ledger])\n\t"
#define OPEN_KERNEL "subl %%eax, 16(%[ledger])\n\tsbbl %%edx, 20(%[ledger])\n\t"

// The changes of account. Interrupts must be off. NMI-safe.
// Out of user mode, by a system call or an exception, and back into it:
static ALWAYS_INLINE void ledger_user_to_kernel(struct account *kernel)
{
    LEDGER_MOVE(this_ledger(), kernel, CLOSE_USER OPEN_KERNEL);
}
static ALWAYS_INLINE void ledger_kernel_to_user(struct account *user)
{
    LEDGER_MOVE(this_ledger(), user, CLOSE_KERNEL OPEN_USER);
}
// From one thread's kernel account to another's (context switch):
static ALWAYS_INLINE void ledger_switch(struct account *kernel)
{
    LEDGER_MOVE(this_ledger(), kernel, );
}
// The idle thread halts, and goes on:
static ALWAYS_INLINE void ledger_idle_enter(void)
{
    LEDGER_MOVE(this_ledger(), &this_ledger()->idle, CLOSE_KERNEL);
}
static ALWAYS_INLINE void ledger_idle_leave(struct account *kernel)
{
    LEDGER_MOVE(this_ledger(), kernel, OPEN_KERNEL);
}
// The start-up code of this CPU becomes a thread:
static ALWAYS_INLINE void ledger_start_up_done(struct account *kernel)
{
    ledger_idle_leave(kernel);
}

// Around an interrupt handler: the account that was open, to give back.
struct account *ledger_irq_enter(u32 vector, bool from_user);
// `interrupted` is opened again; after user mode the kernel account of the
// thread, whose switches and signals may be due.
void ledger_irq_leave(struct account *interrupted, bool from_user,
                      struct account *kernel);

// What `a` has come to if it is, or was last, open on `cpu`. Any CPU may ask;
// not from NMI context. See thread_times for accounts of threads, which move.
u64 ledger_read(const struct cpu *cpu, const struct account *a);
// What all accounts of a CPU came to.
struct ledger_sums {
    u64 user, kernel, irq, idle, start_up;
    u64 elapsed; // TSC now - TSC when this CPU's ledger began
};
void ledger_sums(u32 cpu, struct ledger_sums *out);
// The same as of the TSC `now`, when nothing can change there meanwhile.
void ledger_sums_at(u32 cpu, u64 now, struct ledger_sums *out);
