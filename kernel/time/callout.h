// Callouts: a function called at a given time, on the CPU that set it.
//
// A callout is embedded in its owner. Its deadline is in clock_now_ns units;
// its handler is never called before it. Due callouts of one CPU are called in
// the order of their deadlines, equal ones in the order in which they were set.
// Setting, stopping and calling each cost the same few instructions however
// many are pending (lib/calendar.h). There is no periodic tick: the CPU's
// one-shot timer is armed for the first deadline (arch/clock.h).
//
// A handler may set its own callout again, and other threads may set, stop and
// drain it concurrently: the last operation wins. A handler never runs twice at
// once unless the callout is set on another CPU while it runs.
#pragma once

#include "arch/clock.h"
#include "lib/calendar.h"

struct cpu;

struct callout {
    struct calendar_event event;
    void (*fn)(struct callout *c);
    struct callouts *queue; // of the CPU where it is, or was last, pending
    u8 context;             // CALLOUT_INTERRUPT or CALLOUT_THREAD
    u8 state;
};

// Where the handler runs: in the timer's interrupt, if it is short; or in the
// CPU's callout thread, with interrupts on, where it may sleep (which delays
// that thread's other callouts).
#define CALLOUT_INTERRUPT 0u
#define CALLOUT_THREAD 1u

// Before anything sets a callout on this CPU.
void callouts_init_cpu(struct cpu *cpu);
// The body of the CPU's thread for CALLOUT_THREAD callouts. Also runs those
// that became due before it started. Never returns.
NORETURN void callouts_serve(struct cpu *cpu);

// Initialises a callout that is neither pending nor running.
void callout_init(struct callout *c, void (*fn)(struct callout *c),
                  u32 context);
// (Re)arms it. Any context but NMI.
void callout_set(struct callout *c, u64 deadline);
// Cancels it; returns whether it was pending. Does not wait: if it was not
// pending, its handler may be running. Any context but NMI.
bool callout_stop(struct callout *c);
// Cancels it and waits for its handler: on return the handler does not run and
// will not. Returns whether it was pending. Not from a handler, nor with a lock
// held that the handler takes. CALLOUT_INTERRUPT: any context but NMI;
// CALLOUT_THREAD: thread context that may sleep.
bool callout_drain(struct callout *c);

// True if it is set and its handler has not begun.
static inline bool callout_pending(const struct callout *c)
{
    return READ_ONCE(c->state);
}
static inline u64 callout_deadline(const struct callout *c)
{
    return c->event.at;
}

// Called by arch's timer interrupt, interrupts off: runs the callouts that are
// due at `now` and arms the timer for the next one. The interrupt may be early
// or spurious.
void callouts_interrupt(u64 now);

// A timer interrupt that is this late must have been lost. Then the timer is
// armed again by the next callout_set of that CPU that notices, or by
// callouts_repeat, which the hang watch and the event watch call: it returns
// true if the interrupt was lost. Interrupts off; not from a callout of that
// CPU.
#define CALLOUTS_LOST_NS NSEC_PER_SEC
bool callouts_repeat(const struct cpu *cpu);
// Whether so many interrupts of a timer were lost one after the other that the
// timer must be replaced (clock_replace_timer). Any context.
#define CALLOUTS_LOSSES_MAX 2u
bool callouts_timer_failed(void);
void callouts_timer_replaced(void);
