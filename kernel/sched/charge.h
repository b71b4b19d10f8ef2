// Charging threads: their run time is read from the ledger and updates virtual
// time, interactivity history and level. All functions: with the lock of the
// thread's run queue held. Inline, because each context switch uses them.
#pragma once

#include "kernel/sched/fair.h"
#include "kernel/sched/runqueue.h"

// A thread is interactive if its score plus nice is below this (as in ULE): at
// nice 0, if it runs for less than 3/8 of the time that it does not wait in a
// run queue.
#define INTERACTIVE_BELOW 30

static inline int nice_of(const struct thread *t)
{
    return READ_ONCE(t->nice); // a system call may set it at any time
}

// TSC cycles that the thread running on this CPU consumed by the ledger and is
// not charged for yet. Its account is open here, so the TSC is added.
// Interrupts must be off. Only this CPU writes the account; an NMI that
// charges it between the reads changes `seq`, the sequence counter: retry.
static ALWAYS_INLINE u64 charge_due(const struct thread *t)
{
    const struct ledger *l = this_ledger();
    u64 spent;
    u32 seq;
    do {
        seq = seqcount_peek(&l->seq);
        spent = account_plus(account_now(), &t->total.cycles);
    } while (seqcount_read_retry(&l->seq, seq));
    return spent - t->charged;
}

// Whether the thread competes as a batch thread, which its user's share counts.
static inline void charge_compete(struct thread *t, bool competes)
{
    if (branch_on(&sched_by_user) && t->competing != competes)
        __atomic_fetch_add(&t->share->competing, competes ? 1 : -1u,
                           __ATOMIC_RELAXED);
    t->competing = competes;
}

// CPU time of the thread, which competes, as virtual time.
static ALWAYS_INLINE u64 charge_virtual(const struct thread *t, u64 time)
{
    u64 virtual = fair_virtual(time, nice_of(t));
    if (branch_on(&sched_by_user))
        virtual *= READ_ONCE(t->share->competing);
    return virtual;
}

// Charges a thread that leaves the CPU.
static ALWAYS_INLINE void charge(struct thread *t)
{
    u64 ran = charge_due(t);
    t->charged += ran;
    interactivity_ran(&t->history, history_units(ran), sched_cycles.history);
    if (unlikely(READ_ONCE(t->inherited_charge)))
        interactivity_ran(
            &t->history,
            __atomic_exchange_n(&t->inherited_charge, 0, __ATOMIC_RELAXED),
            sched_cycles.history);
    if (t->competing)
        t->virtual_time += charge_virtual(t, ran);
}

// Sets the level that follows from the thread's history. The thread must be on
// no list.
static inline void charge_relevel(struct thread *t)
{
    if (t->priority < PRIORITY_INTERACTIVE)
        return; // kernel threads keep their level
    s32 score = (s32)interactivity_score(&t->history) + nice_of(t);
    if (score >= INTERACTIVE_BELOW) {
        WRITE_ONCE(t->priority, PRIORITY_BATCH); // wakers read it unlocked
        return;
    }
    charge_compete(t, false);
    t->debt = 0;
    WRITE_ONCE(t->priority, PRIORITY_INTERACTIVE + (u32)MAX(score, 0) *
                                                       INTERACTIVE_LEVELS /
                                                       INTERACTIVE_BELOW);
}

// A batch thread stops competing. Its lead over the waiting thread with the
// least virtual time, LAG_MAX at most, is kept as its debt: a short sleep gains
// nothing.
static inline void charge_leave(const struct run_queue *rq, struct thread *t)
{
    if (!t->competing)
        return;
    charge_compete(t, false);
    t->debt = 0;
    const struct thread *least = run_queue_first_batch(rq);
    if (!least || least->virtual_time >= t->virtual_time)
        return;
    u64 ahead = t->virtual_time - least->virtual_time;
    t->debt = (u32)MIN(ahead, (u64)sched_cycles.lag_max);
}

// The virtual time, up to now, of the batch thread that runs on that CPU.
static inline u64 charge_now(const struct run_queue *rq)
{
    const struct thread *t = rq->running;
    return t->virtual_time + charge_virtual(t, rdtsc() - rq->started);
}
