// The ledger's part of an NMI; for trap_nmi, into which it is inlined.
#pragma once

#include "arch/trap.h"
#include "kernel/time/ledger.h"

// How often reading the books as they stand at one instant has begun and ended:
// odd meanwhile.
extern u32 ledger_freezes;

// What is open gives `spent` to the account of NMIs: a thread's with what it is
// part of, and what it is divided into. (Behind an account of the ledger's own
// lies another, or a sum, that is not open: it is not negative.)
static ALWAYS_INLINE void move_to_nmi(struct ledger *l, u32 spent)
{
    struct thread_base *t = (struct thread_base *)l->open;
    account_add_u32(&l->vectors[VECTOR_NMI].cycles, spent);
    account_subtract_u32(&t->total.cycles, spent);
    if (account_is_negative(&t->user)) {
        account_subtract_u32(&l->threads, spent);
        account_subtract_u32(&t->user, spent);
        account_add_u32(&l->user_since,
                        spent); // it is as if it had been opened later
    } else if (account_is_negative(&l->threads)) {
        account_subtract_u32(&l->threads, spent);
        account_subtract_u32(&l->in[l->subsystem], spent);
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
    if (unlikely(seqcount_is_changing(&l->seq))) {
        counter_add(&l->nmi_unbooked, spent);
        return;
    }
    seqcount_write_begin_full(&l->seq);
    if (likely(word_is(&ledger_freezes, freezes)))
        move_to_nmi(l, spent);
    else
        counter_add(&l->nmi_unbooked, spent);
    ledger_write_end(l);
}
