// What the parts of kernel/profile that sample share.
//
// `sampled` is read by sample_take in interrupt context without a lock: a
// session is put in when it is complete; it is taken out first when it ends,
// and then every CPU is made to pass through an interrupt: a sample_take that
// still saw the session has returned by then, for it runs with interrupts off.
// (So nothing comes back into the list while a sample_take walks it.)
// It changes under streams_lock, which guards the stretches in which time
// counts, too.
#pragma once

#include "arch/trap.h"
#include "kernel/profile/sample.h"
#include "kernel/stream/stream.h"
#include "lib/counter.h"
#include "lib/ring.h"

#define SESSIONS_MAX 16

enum sample_mode { MODE_USER, MODE_KERNEL, MODE_IRQ, MODE_IDLE, MODES };

struct record;

struct session_cpu {
    // The session's source while its samples count, else NULL.
    const struct sample_source *samples_of;
    struct ring ring;
    bool hides_kernel;
    u32 record_room; // for the largest record that the session takes
    // Writes the chains into a record, and returns its size (sample.c); NULL:
    // they are not wanted.
    u32 (*fill_stacks)(struct session_cpu *c, struct record *r,
                       const struct trapframe *tf);
    u32 lost_since; // samples since the last that found room
    // Written by sample_take on this CPU, read by session_info on any.
    struct counter taken[MODES], lost, irqs_off, others, missed, throttled;
    struct counter unreadable;
    struct counter merged; // of others and throttled: ticks that came late
    u64 charged_for;       // interrupts, when costs were divided; streams_lock
};

// In which time ticks come due: all of it; of a counter of cycles, where it
// counts, and never where a CPU is halted; of other events nobody knows.
struct session_when {
    bool user, kernel, idle;
};

// Of one moment, or of the time between two.
struct session_sums {
    u64 targets; // TSC cycles that they have had, when ticks come due
    u64 held_up; // ... of all CPUs, in handlers (expected.h)
    u64 all;     // ... of all CPUs
    u64 ticks;   // of all CPUs, where the source counts them
    u64 tool;    // TSC cycles of the task that profiles
};

struct session {
    struct stream stream;
    struct session *next; // in `sampled`
    const struct sample_source *source;
    struct sample_rate rate;
    struct session_when when;
    u32 asked_hz, flags;
    const char *instead_of;            // struct sprofile_info's
    struct session_sums since, before; // of the running stretch; before it
    u64 cost, interrupts; // charged with: cycles of how many (cost.c)
    u64 ended_cycles;     // of targets that have ended; tasks_lock
    struct session_cpu cpu[CPU_MAX];
};

extern struct session *sampled;
#define FOR_EACH_SESSION(s) for (struct session *s = sampled; s; s = s->next)

// sample.c: before a source starts.
void sample_start_throttle(void);

// cost.c, under streams_lock. Before a source starts:
void cost_measure(void);
// Charges the sessions with what sampling cost until now.
void costs_divide(void);
// TSC cycles that the task which profiles had.
u64 cost_of_tool(struct session *s);
// Of one interrupt, beside what the ledger books to it.
extern struct entry_cost entry_cost;

// What of a session with these flags each of its CPUs has at hand.
void sample_init_cpu(struct session_cpu *c, u32 flags, bool hides_kernel);

// source.c, under streams_lock. The source named, or the best one, started (or
// running already, then at its rate): -ENODEV, or as its start. *instead_of:
// what sampler= names and could not be had, or "".
int source_acquire(const char *asked, struct sample_rate *rate,
                   const struct sample_source **out, const char **instead_of);
void source_release(const struct sample_source *source);

// session.c. What its CPUs have counted, added to `out`: taken by mode, and all
// the rest that a struct session_cpu has. Any context.
void session_counts(const struct session *s, struct sprofile_info *out);

// NULL: no session is in that slot. streams_lock.
struct session *session_in(u32 slot);

// session_report.c, under streams_lock: it has begun; nothing samples for it
// any more.
void report_begun(void);
void report_ended(const struct session *s);

// address_bins.c. The source whose samples are put into bins, or NULL: read by
// sample_take.
extern const struct sample_source *bins_source;
void bins_sample(const struct trapframe *tf, u32 ticks);
