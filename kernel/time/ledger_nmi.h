// The ledger's part of an NMI; for trap_nmi, into which it is inlined.
#pragma once

#include "arch/trap.h"
#include "kernel/sched/thread.h"
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

// The account that is open, and the total it is part of, give `spent` to that
// of NMIs. The ledger's own accounts are part of no total.
static ALWAYS_INLINE void move_to_nmi(struct ledger *l, u32 spent)
{
    struct account *open = l->open;
    struct thread *t = current;
    GIVE(&l->vectors[VECTOR_NMI].cycles, spent);
    TAKE(&open->cycles, spent);
    if (open == &t->user)
        TAKE(&l->user, spent);
    else if (likely((u32)open - (u32)l >= sizeof(*l)))
        TAKE(&l->in[l->subsystem], spent);
}

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
    if (unlikely(READ_ONCE(l->seq) & 1)) {
        counter_add(&l->nmi_unbooked, spent);
        return;
    }
    __atomic_fetch_add(&l->seq, 1, __ATOMIC_SEQ_CST);
    if (likely(READ_ONCE(ledger_freezes) == freezes))
        move_to_nmi(l, spent);
    else
        counter_add(&l->nmi_unbooked, spent);
    ledger_write_end(l);
}
