// Sampling: sources interrupt, sessions collect.
//
//     source (interrupts at its rate) -> sample_take() -> every session of that
//     source that wants the sample -> its ring of this CPU -> the phone that
//     the user tool reads from
#pragma once

#include "lib/set.h"
#include "lib/types.h"
#include <strobe/kbox.h>
#include <strobe/profile.h>

struct trapframe;
struct thread;
struct task;
struct stream;
struct waitq;

// --- sources (linker set sample_sources) ------------------------------------

// The sampling rate requested of a source, and on return of `start` the actual
// one.
struct sample_rate {
    u32 hz;                          // clamped to the source's range
    u64 period;                      // between samples: events (0: by hz) or ns
    char event[SPROFILE_EVENT_NAME]; // "": the source's default
    bool random;                     // periods vary (lib/random_distance.h)
    bool no_fixed; // the session is not to begin if they do not
};

struct sample_source {
    const char *name;
    u32 rank; // the highest usable one is the default; 0: must be named
    u32 min_hz, max_hz;
    bool nmi;   // interrupts code that has interrupts off
    bool point; // its samples are events of a trace point, not interrupts
    // A maskable interrupt of the boot CPU sends NMIs to the other CPUs.
    bool sends;
    // The default event of a source that counts events, and so uses `period`
    // and `event` of a rate; NULL: it counts none.
    const char *counts;
    // The next instance of an event source. Each instance counts one event at a
    // time; those after the first are in no linker set and are otherwise the
    // same. NULL: the last instance.
    const struct sample_source *next;
    const char
        *timer; // its timer in the registry (kernel/time/timer.h), or NULL
    // NULL: usable, else the reason; without the self-test (source_why_not).
    const char *(*why_not)(const struct sample_source *s);
    // The vector of its interrupts, for the self-test, while it runs. NULL: it
    // uses the clock's events.
    u32 (*vector)(const struct sample_source *s);
    // Starts on all CPUs. Sets rate->hz (0 if by period) and rate->period to
    // the actual values, and rate->random to false if periods cannot vary. 0,
    // -EINVAL (no such event), -EBUSY (the device is in use). May sleep. From
    // then on the source calls sample_take or sample_take_irq on each CPU.
    int (*start)(const struct sample_source *s, struct sample_rate *rate);
    // On return no sample_take for this source runs or will run.
    void (*stop)(const struct sample_source *s);
    // With random periods: ticks that came due for this CPU since boot.
    // Interrupts off. NULL: ticks are not counted, their number follows from
    // rate and time.
    u64 (*ticks)(const struct sample_source *s);
};
#define SAMPLE_SOURCE(s) LINKER_SET_ADD(sample_sources, s)

// Tests a source that is not running: NULL, also if it is not usable, or how
// its interrupts fail to arrive. streams_lock; sleeps.
const char *source_test(const struct sample_source *s);
// Tests each source: once, when all CPUs run, before a session begins. Sleeps.
void sources_test(void);
// NULL: the source is usable, and its interrupts have arrived; else the reason.
const char *source_why_not(const struct sample_source *s);

// One interrupt of a source.
struct sample_hit {
    const struct trapframe *tf; // the interrupted context
    u32 ticks;                  // periods accounted for, >= 1: late ticks merge
    u64 period;                 // sum of these periods: ns or events
    u64 time;                   // TSC at the interrupt
};
// Takes a sample in an NMI. Takes no lock, never faults.
void sample_take(const struct sample_source *source,
                 const struct sample_hit *hit);
// The same of a counter's event, which does not come due in a handler.
void sample_take_event(const struct sample_source *source,
                       const struct sample_hit *hit);
// The same in the handler of a maskable interrupt, interrupts off.
void sample_take_irq(const struct sample_source *source,
                     const struct sample_hit *hit);
// The same in the listener of a trace point, interrupts off, with its context
// from unwind_caller() or unwind_interrupted(). `cycles`: the cost of all
// before it on this CPU.
void sample_take_point(const struct sample_source *source,
                       const struct sample_hit *hit, u32 cycles);

// --- sessions ---------------------------------------------------------------

// A session is a stream that samples (kernel/stream/stream.h). `task` NULL: the
// whole system except the caller's task. `readers` is woken when there is
// something to read. 0, -EUSERS (too many sessions), -ENOMEM, -EINVAL
// (options), -ENOENT (no such event), -ENODEV (the source is unknown or not
// usable), -EBUSY (the source is in use), -ERANGE (its distances are fixed).
int session_begin(struct task *task, const struct sprofile_options *options,
                  struct waitq *readers, struct stream **out);
void session_end(struct stream *s); // frees it; sleeps
void session_info(struct stream *s, struct sprofile_info *out);

// --- the address-bin profiler (<strobe/profile.h>) --------------------------

// The result of SYS_profile: 0 or -errno, including errors of starting the
// source.
int bins_profile(u32 task, u32 low, u32 high);
int bins_result(struct prof_data *out); // 0; -EPERM: of another user
