// Time accounting of NMIs, inlined into trap_nmi.
#pragma once

#include "arch/trap.h"
#include "kernel/time/ledger.h"

// Incremented by ledger_freeze and by ledger_thaw: odd while frozen.
extern u32 ledger_freezes;

// Moves `spent` cycles from the open account to that of NMIs; from a thread's
// account also in the sums that contain it and in its parts. (If `open` is not
// a thread's, t->user is what follows that account in the ledger: another
// account or a sum, which is not open and so not negative.)
static ALWAYS_INLINE void move_to_nmi(struct ledger *l, u32 spent)
{
    struct thread_base *t = (struct thread_base *)l->open;
    account_add_u32(&l->vectors[VECTOR_NMI].cycles, spent);
    account_subtract_u32(&t->total.cycles, spent);
    if (account_is_negative(&t->user)) {
        account_subtract_u32(&l->threads, spent);
        account_subtract_u32(&t->user, spent);
        account_add_u32(&l->user_since, spent); // as if opened later
    } else if (account_is_negative(&l->threads)) {
        account_subtract_u32(&l->threads, spent);
        account_subtract_u32(&l->in[l->subsystem], spent);
    }
}
_Static_assert(offsetof(struct thread_base, total) == 0,
               "what `open` points to");

// Called at the end of an NMI that began at `began` (TSC, low half): moves its
// cycles from the open account to that of its vector. Not if it interrupted a
// switch: an account that was just closed may have fewer cycles and must not
// become negative. Not if the ledgers were or are frozen: values reported then
// must not decrease. In these cases the cycles stay with the interrupted
// account. `freezes` was read before `began`. Returns the cycles of the NMI.
//
// Ordering against ledger_freeze: either this sees that the ledgers are frozen,
// or ledger_freeze sees `seq` odd and waits. Each writes before it reads what
// the other has written, with a full barrier between.
static ALWAYS_INLINE u32 ledger_nmi(u32 freezes, u32 began)
{
    struct ledger *l = this_ledger();
    u32 spent = (u32)rdtsc() - began;
    l->nmi_cycles += spent;
    if (unlikely(seqcount_is_changing(&l->seq))) {
        counter_add(&l->nmi_unaccounted, spent);
        return spent;
    }
    seqcount_write_begin_full(&l->seq);
    if (likely(word_is(&ledger_freezes, freezes)))
        move_to_nmi(l, spent);
    else
        counter_add(&l->nmi_unaccounted, spent);
    ledger_write_end(l);
    return spent;
}
