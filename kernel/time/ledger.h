// The ledger: on every CPU exactly one account is open at any moment. Each
// change reads the TSC once and charges the account that closes, so on each CPU
// the sum of all accounts is the TSC time since its ledger began, to the cycle.
//
// An account is written only by the CPU that has it open. `seq` is odd while it
// is written, so that another CPU never reads a torn 64-bit counter.
#pragma once

#include "arch/cpu.h"

struct account {
    u32 seq;
    u64 cycles;
};

// One a CPU. Vector accounts: interrupts 0x20-0xff, and NMI at VECTOR_NMI.
struct ledger {
    struct account *open;
    u64 since; // TSC when `open` was opened
    u64 began;
    u64 user; // of all threads here, as it went by
    struct account idle;
    struct account start_up; // before the first thread runs
    struct account vectors[256];
};

void ledger_init_cpu(struct cpu *cpu);

// Closes the account that is open on this CPU, charging it every cycle since it
// was opened, and opens `next`. Interrupts must be off.
static ALWAYS_INLINE void ledger_switch(struct account *next)
{
    struct ledger *l = this_cpu()->ledger;
    struct account *closing = l->open;
    u64 now = rdtsc();
    WRITE_ONCE(closing->seq, closing->seq + 1);
    barrier();
    closing->cycles += now - l->since;
    barrier();
    WRITE_ONCE(closing->seq, closing->seq + 1);
    l->since = now;
    l->open = next;
}

// The ways in and out of the kernel (arch's trap code); interrupts off.
void ledger_from_user(void); // system call or exception in user mode
void ledger_to_user(void);   // the last thing before returning to user mode
// Around an interrupt handler: the account that was open, to give back.
struct account *ledger_irq_enter(u32 vector, bool from_user);
void ledger_irq_leave(struct account *interrupted, bool from_user);

// Reads an account from any CPU. Not from NMI context.
u64 account_read(const struct account *a);
// What all accounts of this CPU's kinds came to: sums over time, for /proc/stat.
struct ledger_sums {
    u64 user, irq, idle, elapsed; // the rest of elapsed is kernel time
};
void ledger_sums(u32 cpu, struct ledger_sums *out);
