// Time accounting of NMIs, inlined into trap_nmi.
#pragma once

#include "arch/trap.h"
#include "kernel/time/ledger.h"

// Incremented by ledger_freeze and by ledger_thaw: odd while frozen.
extern u32 ledger_freezes;

// An NMI came at a thread's entry from user mode or at its exit to it: also the
// NMI's own entry and exit, which are not in its cycles, are kernel time.
static ALWAYS_INLINE void delay_user(struct ledger *l, struct thread_base *t)
{
    account_subtract_u32(&t->user, l->nmi_outside);
    account_add_u32(&l->user_since, l->nmi_outside);
    account_add_u32(&l->in[l->subsystem], l->nmi_outside);
}

static ALWAYS_INLINE void take_from_user(struct ledger *l,
                                         struct thread_base *t, u32 spent,
                                         const struct trapframe *tf)
{
    account_subtract_u32(&l->threads, spent);
    account_subtract_u32(&t->user, spent);
    account_add_u32(&l->user_since, spent); // as if opened later
    if (unlikely(!trap_from_user(tf)))
        delay_user(l, t);
}

static ALWAYS_INLINE void take_from_kernel(struct ledger *l, u32 spent)
{
    account_subtract_u32(&l->threads, spent);
    account_subtract_u32(&l->in[l->subsystem], spent);
}

// Moves `spent` cycles from the open account to that of NMIs; from a thread's
// account also in the sums that contain it and in its parts. (If `open` is not
// a thread's, t->user is what follows that account in the ledger: another
// account or a sum, which is not open and so not negative.) `at`: what the NMI
// has interrupted, but not SWITCHING.
static ALWAYS_INLINE void move_to_nmi(struct ledger *l, u32 spent,
                                      const struct trapframe *tf,
                                      enum ledger_switch at)
{
    struct thread_base *t = (struct thread_base *)l->open;
    account_add_u32(&l->vectors[VECTOR_NMI].cycles, spent);
    account_subtract_u32(&t->total.cycles, spent);
    if (at == SWITCHING_TO_USER ||
        (at == NOT_SWITCHING && account_is_negative(&t->user)))
        take_from_user(l, t, spent, tf);
    else if (at == SWITCHING_TO_KERNEL || account_is_negative(&l->threads))
        take_from_kernel(l, spent);
}
_Static_assert(offsetof(struct thread_base, total) == 0,
               "what `open` points to");

static ALWAYS_INLINE u32 nmi_spent(struct ledger *l, u32 began)
{
    u32 spent = (u32)rdtsc() - began;
    l->nmi_cycles += spent;
    return spent;
}

// The same if the NMI has interrupted a switch: its time is read when all that
// takes longer than elsewhere is done. Not in other code than entry.S and the
// way there (LEDGER_LEAVING): an account that was just closed may have fewer
// cycles and must not become negative.
static NOINLINE u32 move_in_switch(u32 freezes, u32 began, struct trapframe *tf)
{
    struct ledger *l = this_ledger();
    enum ledger_switch at = trap_interrupted_switch(tf);
    if (at == SWITCHING && seqcount_peek(&l->seq) & LEDGER_LEAVING & ~1u)
        at = NOT_SWITCHING;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); // as write_begin_full
    u32 spent = nmi_spent(l, began);
    if (at == SWITCHING || !word_is(&ledger_freezes, freezes))
        counter_add(&l->nmi_unaccounted, spent);
    else
        move_to_nmi(l, spent, tf, at);
    return spent;
}

// Called at the end of an NMI that began at `began`
// (TSC, low half): moves its cycles from
// the open account to that of its vector. Not if the ledgers were or are
// frozen: values reported then must not decrease. `freezes` was read before.
// Where they cannot be moved, the cycles stay with the interrupted account.
// Returns the cycles of the NMI.
//
// Ordering against ledger_freeze: either this sees that the ledgers are frozen,
// or ledger_freeze sees `seq` odd and waits. Each writes before it reads what
// the other has written, with a full barrier between.
static ALWAYS_INLINE u32 ledger_nmi(u32 freezes, u32 began,
                                    struct trapframe *tf)
{
    struct ledger *l = this_ledger();
    if (unlikely(seqcount_is_changing(&l->seq)))
        return move_in_switch(freezes, began, tf);
    u32 spent = nmi_spent(l, began);
    seqcount_write_begin_full(&l->seq);
    if (likely(word_is(&ledger_freezes, freezes)))
        move_to_nmi(l, spent, tf, NOT_SWITCHING);
    else
        counter_add(&l->nmi_unaccounted, spent);
    ledger_write_end(l);
    return spent;
}
