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
    struct account *open; // offsets are known to the assembly below
    u32 seq;
    u64 user; // of all threads here: open while a user account is
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

// Closes the account that is open on this CPU, charging it every cycle since it
// was opened, and opens `next`. Interrupts must be off. NMI-safe.
static ALWAYS_INLINE void ledger_switch(struct account *next)
{
    struct ledger *l = this_ledger();
    __asm__ volatile("incl 4(%[ledger])\n\t"
                     "movl (%[ledger]), %%ecx\n\t"
                     "rdtsc\n\t"
                     "addl %%eax, (%%ecx)\n\t"
                     "adcl %%edx, 4(%%ecx)\n\t"
                     "subl %%eax, (%[next])\n\t"
                     "sbbl %%edx, 4(%[next])\n\t"
                     "movl %[next], (%[ledger])\n\t"
                     "incl 4(%[ledger])"
                     :
                     : [ledger] "r"(l), [next] "r"(next)
                     : "eax", "ecx", "edx", "cc", "memory");
}

// The same, between a user account and a kernel one: the CPU's user total opens
// and closes with it.
static ALWAYS_INLINE void ledger_switch_from_user(struct account *next)
{
    struct ledger *l = this_ledger();
    __asm__ volatile("incl 4(%[ledger])\n\t"
                     "movl (%[ledger]), %%ecx\n\t"
                     "rdtsc\n\t"
                     "addl %%eax, (%%ecx)\n\t"
                     "adcl %%edx, 4(%%ecx)\n\t"
                     "addl %%eax, 8(%[ledger])\n\t"
                     "adcl %%edx, 12(%[ledger])\n\t"
                     "subl %%eax, (%[next])\n\t"
                     "sbbl %%edx, 4(%[next])\n\t"
                     "movl %[next], (%[ledger])\n\t"
                     "incl 4(%[ledger])"
                     :
                     : [ledger] "r"(l), [next] "r"(next)
                     : "eax", "ecx", "edx", "cc", "memory");
}

static ALWAYS_INLINE void ledger_switch_to_user(struct account *next)
{
    struct ledger *l = this_ledger();
    __asm__ volatile("incl 4(%[ledger])\n\t"
                     "movl (%[ledger]), %%ecx\n\t"
                     "rdtsc\n\t"
                     "addl %%eax, (%%ecx)\n\t"
                     "adcl %%edx, 4(%%ecx)\n\t"
                     "subl %%eax, 8(%[ledger])\n\t"
                     "sbbl %%edx, 12(%[ledger])\n\t"
                     "subl %%eax, (%[next])\n\t"
                     "sbbl %%edx, 4(%[next])\n\t"
                     "movl %[next], (%[ledger])\n\t"
                     "incl 4(%[ledger])"
                     :
                     : [ledger] "r"(l), [next] "r"(next)
                     : "eax", "ecx", "edx", "cc", "memory");
}

// Around an interrupt handler: the account that was open, to give back.
struct account *ledger_irq_enter(u32 vector, bool from_user);

// What `a` has come to if it is, or was last, open on `cpu`. Any CPU may ask;
// not from NMI context. See thread_times for accounts of threads, which move.
u64 ledger_read(const struct cpu *cpu, const struct account *a);
// What all accounts of a CPU's kinds came to, for /proc/stat.
struct ledger_sums {
    u64 user, irq, idle, elapsed; // the rest of elapsed is kernel time
};
void ledger_sums(u32 cpu, struct ledger_sums *out);
