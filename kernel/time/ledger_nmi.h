// The ledger's part of an NMI; for trap_nmi, into which it is inlined.
#pragma once

#include "arch/trap.h"
#include "kernel/time/ledger.h"

// How often reading the books as they stand at one instant has begun and ended:
// odd meanwhile.
extern u32 ledger_freezes;

// In two instructions, like the changes of account: readers on other CPUs look
// meanwhile, and look again.
#define CHANGE(op, carry, total, n)                                         \
    __asm__ volatile(op " %2, %0\n\t" carry " $0, %1"                       \
                     : "+m"(((u32 *)(total))[0]), "+m"(((u32 *)(total))[1]) \
                     : "r"(n)                                               \
                     : "cc")
#define GIVE(to, n) CHANGE("addl", "adcl", to, n)
#define TAKE(from, n) CHANGE("subl", "sbbl", from, n)

// Comparisons with memory, in one instruction each.
#define IS_OPEN(total)                                                         \
    ({                                                                         \
        bool negative;                                                         \
        __asm__("cmpl $0, %1" : "=@ccs"(negative) : "m"(((u32 *)(total))[1])); \
        negative;                                                              \
    })
#define IS_CHANGING(l)                                                    \
    ({                                                                    \
        bool odd;                                                         \
        __asm__ volatile("testb $1, %1" : "=@ccnz"(odd) : "m"((l)->seq)); \
        odd;                                                              \
    })
#define STILL(number, was)                       \
    ({                                           \
        bool same;                               \
        __asm__ volatile("cmpl %2, %1"           \
                         : "=@cce"(same)         \
                         : "m"(number), "r"(was) \
                         : "memory");            \
        same;                                    \
    })

// What is open gives `spent` to the account of NMIs: a thread's with what it is
// part of, and what it is divided into. (Behind an account of the ledger's own
// lies another, or a sum, that is not open: it is not negative.)
static ALWAYS_INLINE void move_to_nmi(struct ledger *l, u32 spent)
{
    struct thread_base *t = (struct thread_base *)l->open;
    GIVE(&l->vectors[VECTOR_NMI].cycles, spent);
    TAKE(&t->total.cycles, spent);
    if (IS_OPEN(&t->user)) {
        TAKE(&l->threads, spent);
        TAKE(&t->user, spent);
        GIVE(&l->user_since, spent); // it is as if it had been opened later
    } else if (IS_OPEN(&l->threads)) {
        TAKE(&l->threads, spent);
        TAKE(&l->in[l->subsystem], spent);
    }
}
_Static_assert(offsetof(struct thread_base, total) == 0,
               "what `open` points to");

// At the end of an NMI that began at `began` (TSC, low half): moves its cycles
// to the account of its vector, out of the one that is open. Not when it came
// in the middle of a switch: an account that was just closed need not have so
// many, and is not to fall below 0; nor when the books were or are frozen: what
// was told then is not to become less. The cycles stay then with what was
// interrupted. `freezes` is from before `began`.
//
// Either this sees that the books are frozen, or who freezes them sees `seq`
// odd and waits: each writes before it reads what the other has written.
static ALWAYS_INLINE void ledger_nmi(u32 freezes, u32 began)
{
    struct ledger *l = this_ledger();
    u32 spent = (u32)rdtsc() - began;
    l->nmi_cycles += spent;
    if (unlikely(IS_CHANGING(l))) {
        counter_add(&l->nmi_unbooked, spent);
        return;
    }
    __atomic_fetch_add(&l->seq, 1, __ATOMIC_SEQ_CST);
    if (likely(STILL(ledger_freezes, freezes)))
        move_to_nmi(l, spent);
    else
        counter_add(&l->nmi_unbooked, spent);
    ledger_write_end(l);
}
