// Sampling: sources interrupt, sessions collect.
//
//     source (who interrupts, how often) -> sample_take() -> every session of
//     that source that wants it -> its ring of this CPU -> the phone that the
//     user tool reads from
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

// How often a source is to interrupt.
struct sample_rate {
    u32 hz;     // clamped to the source's range; really set on return
    u64 period; // of a source that counts events; 0: by hz
    char event[SPROFILE_EVENT_NAME]; // likewise; "": its first
    bool random; // periods vary by half (lib/random_distance.h)
};

struct sample_source {
    const char *name;
    u32 rank; // the highest usable one is the default
    u32 min_hz, max_hz;
    bool nmi; // interrupts code that has interrupts off
    // An interrupt of the boot CPU sends the NMIs to the others.
    bool sends;
    // Of one that counts events and knows `period` and `event`: its first; else
    // NULL.
    const char *counts;
    // One event at a time: another one is counted by the next of these, which
    // are in no set, and are the same otherwise. NULL: that was the last.
    const struct sample_source *next;
    // NULL: usable, else the reason.
    const char *(*why_not)(const struct sample_source *s);
    // Starts on all CPUs and sets rate->hz (0 if by period) and rate->period to
    // what they really are, rate->random to false if it cannot. 0, -EINVAL (no
    // such event), -EBUSY (the device is in use). May sleep. From then on calls
    // sample_take in interrupt context on each CPU.
    int (*start)(const struct sample_source *s, struct sample_rate *rate);
    // After it no sample_take runs or will.
    void (*stop)(const struct sample_source *s);
    // With random periods: ticks that have come due for this CPU, since ever.
    // Interrupts off. NULL: the number is not known but by rate and time.
    u64 (*ticks)(const struct sample_source *s);
};
#define SAMPLE_SOURCE(s) LINKER_SET_ADD(sample_sources, s)

// One interrupt of a source.
struct sample_hit {
    const struct trapframe *tf; // what it hit
    u32 ticks;  // periods it stands for, >= 1: the others came too late
    u64 period; // what all of them stand for: ns or events
    u64 time;   // when it came: TSC
};
// Interrupts off; takes no lock, never faults. From an NMI.
void sample_take(const struct sample_source *source,
                 const struct sample_hit *hit);
// From the handler of another interrupt.
void sample_take_irq(const struct sample_source *source,
                     const struct sample_hit *hit);
// TSC cycles, low half, that NMIs have taken of this CPU, but for the one that
// is under way. NMI context.
u32 sample_nmi_cycles(void);

// --- sessions ---------------------------------------------------------------

// A session is a stream that samples (kernel/stream/stream.h). `task` NULL: the
// whole system but the caller's task. `readers` is woken when there is
// something to read. 0, -EUSERS (too many sessions), -ENOMEM, -EINVAL
// (options), -ENOENT (there is no such event), -ENODEV (the source is unknown
// or not usable), -EBUSY (it has another user).
int session_begin(struct task *task, const struct sprofile_options *options,
                  struct waitq *readers, struct stream **out);
void session_end(struct stream *s); // frees it; sleeps
void session_info(struct stream *s, struct sprofile_info *out);

// --- the address-bin profiler (<strobe/profile.h>) --------------------------

// profile's 0 or -errno; also what starting the source may give.
int bins_profile(u32 task, u32 low, u32 high);
int bins_result(struct prof_data *out); // 0 or -EPERM: another user's
