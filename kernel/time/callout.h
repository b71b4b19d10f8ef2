// Callouts: a function called at a time, on the CPU that set it.
//
// A callout is embedded in its owner. Its deadline is in clock_now_ns units; it
// is never called before it, and those of one CPU that are due are called in
// the order of their deadlines, equals in the order in which they were set.
// Setting, stopping and calling each cost the same few instructions however
// many are pending (lib/calendar.h); there is no tick behind them: the CPU's
// one-shot timer is armed for the first (arch/clock.h).
//
// A handler may set its own callout again, others set, stop and drain it at the
// same time: the last one wins. A handler never runs twice at once unless the
// callout is set on another CPU while it runs.
#pragma once

#include "arch/clock.h"
#include "lib/calendar.h"

struct cpu;

struct callout {
    struct calendar_event event;
    void (*fn)(struct callout *c);
    struct callouts *queue; // of the CPU where it is or was last
    u8 where;               // CALLOUT_INTERRUPT or CALLOUT_THREAD
    u8 state;
};

// Where the handler runs: in the timer's interrupt, if it is short; or in the
// CPU's thread for callouts, with interrupts on, where it may sleep (the others
// of that CPU's thread wait meanwhile).
#define CALLOUT_INTERRUPT 0u
#define CALLOUT_THREAD 1u

// Before anything sets a callout on this CPU.
void callouts_init_cpu(struct cpu *cpu);
// The CPU's thread for CALLOUT_THREAD ones, which stays there. Also runs what
// became due before. Never returns.
NORETURN void callouts_serve(struct cpu *cpu);

// For one that is not pending and does not run.
void callout_init(struct callout *c, void (*fn)(struct callout *c), u32 where);
// (Re)arms it. Any context but NMI.
void callout_set(struct callout *c, u64 deadline);
// Takes it back; returns whether it was pending. Does not wait: where it was
// not, its handler may be running. Any context but NMI.
bool callout_stop(struct callout *c);
// After it returns the handler does not run and will not: it waits for one that
// runs. Returns whether it was pending. Not from a handler, nor with a lock
// that the handler takes. CALLOUT_INTERRUPT: any context but NMI; the others:
// thread context that may sleep.
bool callout_drain(struct callout *c);

// It is set and its handler has not begun.
static inline bool callout_pending(const struct callout *c)
{
    return READ_ONCE(c->state);
}
static inline u64 callout_deadline(const struct callout *c)
{
    return c->event.at;
}

// From arch's timer interrupt, interrupts off: runs what is due at `now` and
// arms the timer for the rest. It may come before anything is, or in vain.
void callouts_interrupt(u64 now);

// The timer's interrupt was lost if it is late by so much. Then the next
// callout_set of that CPU that notices arms it again, or callouts_repeat, which
// the hang watch and the event watch call: true if it was so. Interrupts off;
// not from a callout of that CPU.
#define CALLOUTS_LOST_NS NSEC_PER_SEC
bool callouts_repeat(const struct cpu *cpu);
