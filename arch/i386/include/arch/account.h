// Ledger updates (kernel/time/ledger.h): how a 64-bit sum is changed, and read,
// where an NMI of the same CPU may change it, too.
//
// Only its own CPU and that CPU's NMIs write a sum. Each half is one
// instruction, and the carry between them is in the flags, which an NMI saves
// and restores: so at any point an NMI's own change is neither lost nor torn.
// Other CPUs read under a sequence counter. The compiler sees which memory is
// changed; the order with other accesses comes from explicit barriers
// (lib/seqcount.h), and all of these functions keep their order.
#pragma once

#include "lib/types.h"

#define LOW(sum) ((const u32 *)(sum))[0]
#define HIGH(sum) ((const u32 *)(sum))[1]
#define LOW_CHANGES "+m"(((u32 *)sum)[0])
#define HIGH_CHANGES "+m"(((u32 *)sum)[1])

// The clock of accounts: the TSC.
static ALWAYS_INLINE u64 account_now(void)
{
    u64 now;
    __asm__ volatile("rdtsc" : "=A"(now));
    return now;
}

// *sum += n: closes an account at time n.
static ALWAYS_INLINE void account_add(u64 *sum, u64 n)
{
    __asm__ volatile("addl %%eax, %0\n\t"
                     "adcl %%edx, %1"
                     : LOW_CHANGES, HIGH_CHANGES
                     : "A"(n)
                     : "cc");
}
// *sum -= n: opens an account at time n.
static ALWAYS_INLINE void account_subtract(u64 *sum, u64 n)
{
    __asm__ volatile("subl %%eax, %0\n\t"
                     "sbbl %%edx, %1"
                     : LOW_CHANGES, HIGH_CHANGES
                     : "A"(n)
                     : "cc");
}
// The same with a 32-bit n.
static ALWAYS_INLINE void account_add_u32(u64 *sum, u32 n)
{
    __asm__ volatile("addl %2, %0\n\t"
                     "adcl $0, %1"
                     : LOW_CHANGES, HIGH_CHANGES
                     : "ri"(n)
                     : "cc");
}
static ALWAYS_INLINE void account_subtract_u32(u64 *sum, u32 n)
{
    __asm__ volatile("subl %2, %0\n\t"
                     "sbbl $0, %1"
                     : LOW_CHANGES, HIGH_CHANGES
                     : "ri"(n)
                     : "cc");
}

// n + *sum, and n - *sum.
static ALWAYS_INLINE u64 account_plus(u64 n, const u64 *sum)
{
    __asm__ volatile("addl %1, %%eax\n\t"
                     "adcl %2, %%edx"
                     : "+&A"(n)
                     : "m"(LOW(sum)), "m"(HIGH(sum))
                     : "cc");
    return n;
}
static ALWAYS_INLINE u64 account_minus(u64 n, const u64 *sum)
{
    __asm__ volatile("subl %1, %%eax\n\t"
                     "sbbl %2, %%edx"
                     : "+&A"(n)
                     : "m"(LOW(sum)), "m"(HIGH(sum))
                     : "cc");
    return n;
}

// The time + *sum - *minus, with the ledger's sequence counter odd. An NMI that
// interrupts it makes it begin again (struct switch_code).
static ALWAYS_INLINE u64 account_now_plus_minus(const u64 *sum,
                                                const u64 *minus)
{
    u64 now;
    __asm__ volatile("1: rdtsc\n\t"
                     "addl %1, %%eax\n\t"
                     "adcl %2, %%edx\n\t"
                     "subl %3, %%eax\n\t"
                     "sbbl %4, %%edx\n"
                     "2: .pushsection set_ledger_switches, \"a\"\n\t"
                     ".long 1b, 2b, 2b, 0\n\t"
                     ".popsection"
                     : "=&A"(now)
                     : "m"(LOW(sum)), "m"(HIGH(sum)), "m"(LOW(minus)),
                       "m"(HIGH(minus))
                     : "cc");
    return now;
}

// Whether *sum is negative, which means that the account is open. One
// comparison with memory.
static ALWAYS_INLINE bool account_is_negative(const u64 *sum)
{
    bool negative;
    __asm__ volatile("cmpl $0, %1" : "=@ccs"(negative) : "m"(HIGH(sum)));
    return negative;
}

#undef LOW
#undef HIGH
#undef LOW_CHANGES
#undef HIGH_CHANGES
