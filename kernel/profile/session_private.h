// Shared by the parts of kernel/profile that implement sampling.
//
// sample_take walks `sampled` in interrupt context without a lock. A session is
// inserted when it is complete. When it ends it is removed first; then the
// other CPUs are quiesced by an IPI. sample_take runs with interrupts off, so
// any sample_take that still saw the session has returned by then. No removed
// session is reinserted while a sample_take walks the list. Writers hold
// streams_lock, which also guards the intervals in which time counts.
#pragma once

#include "arch/trap.h"
#include "kernel/profile/sample.h"
#include "kernel/stream/stream.h"
#include "lib/counter.h"
#include "lib/ring.h"

#define SESSIONS_MAX 16

enum sample_mode { MODE_USER, MODE_KERNEL, MODE_IRQ, MODE_IDLE, MODES };
#define NOT_TAKEN MODES // interrupts that yield no sample

struct user_part;

// Its size is a power of two, so that its address costs few instructions.
struct session_cpu {
    // The session's source while its samples count, else NULL.
    const struct sample_source *samples_of;
    struct ring ring;
    bool hides_kernel;
    bool by_point;   // the samples are of a trace point
    u32 record_room; // bytes of the session's largest record
    u32 deep_words;  // of the user stack, with SPROFILE_O_DEEP; else 0
    // Write a record's user part (arch/unwind.h) if user code was interrupted,
    // and if the kernel was. NULL: the session wants no chains.
    u32 *(*unwind_user)(const struct trapframe *tf, u32 *out,
                        struct user_part *part);
    u32 *(*unwind_left_user)(const struct trapframe *tf, u32 *out,
                             struct user_part *part);
    u32 lost_since; // samples lost and not yet reported
    // Written by sample_take on this CPU, read by session_info on any.
    // Each interrupt is counted in one of `taken`.
    struct counter taken[MODES + 1], lost, irqs_off, others, missed, throttled;
    struct counter in_sampling, unreadable;
    u64 charged_for, newly; // interrupts until the last division of the costs,
                            // and in it (cost.c); streams_lock
} __attribute__((aligned(256)));

// The modes in which ticks come due. Timer sources: all. A cycle counter: those
// in which it counts, never on a halted CPU. Other events: none, as it is not
// known when they occur.
struct session_modes {
    bool user, kernel, idle;
};

// Cumulative sums at one moment, or their growth over an interval.
struct session_sums {
    u64 targets;     // TSC cycles of the targets, in modes where ticks come due
    u64 in[MODES];   // the same in all modes, by mode, but without the tool
    u64 in_handlers; // TSC cycles of all CPUs in handlers (expected_samples.h)
    u64 all;         // TSC cycles of all CPUs
    u64 ticks;       // due on all CPUs, if the source counts them
    u64 tool;        // TSC cycles of the profiling task
    u64 actual, reference; // of all CPUs (<strobe/core_clock.h>)
};

struct session {
    struct stream stream;
    struct session *next; // in `sampled`
    const struct sample_source *source;
    struct sample_rate rate;
    struct session_modes modes;
    u32 asked_hz, flags;
    const char *instead_of;         // as in struct sprofile_info
    struct strobe_core_clock clock; // without cycles
    // At the start of the current interval; of all intervals before it.
    struct session_sums since, before;
    u64 cost, interrupts; // charged: TSC cycles, and of how many (cost.c)
    u64 ended[MODES];     // TSC cycles of ended targets; tasks_lock
    bool timed; // the targets' times at the interval's start are in the stream,
                // those at its end are not; tasks_lock
    struct session_cpu cpu[]; // of each CPU
};

extern struct session *sampled;
#define FOR_EACH_SESSION(s) for (struct session *s = sampled; s; s = s->next)

// sample.c: called before a source starts.
void sample_start_throttle(void);
// Called when a source of NMIs has started: those of its ticks that are due in
// the handler of another one come up to `ns` after it; and when it has stopped.
// (Counters' events are none of time.) streams_lock.
void sample_nmi_delay(u64 ns);
#define SAMPLE_NO_DELAY (~0ull)
// Such a tick of an NMI, or of another interrupt, comes fewer than these TSC
// cycles, outside of handlers, after it.
u32 sample_behind(bool nmi);
// `bins_source` has changed. streams_lock.
void sample_bins_changed(void);

// cost.c, under streams_lock. Called before a source starts:
void cost_measure(void);
// The highest rate at which a source by time leaves each CPU a part of its time
// for other things than sampling interrupts. After cost_measure.
u32 cost_highest_hz(const struct sample_source *s);
// Charges the sessions with the cost of sampling until now.
void costs_divide(void);
// TSC cycles consumed by the profiling task.
u64 cost_of_tool(struct session *s);
// The cost of one interrupt that the ledger does not charge to it.
extern struct entry_cost entry_cost;

// How a source's samples come.
enum sample_way { BY_NMI, BY_IRQ, BY_POINT, SAMPLE_WAYS };

// Initialises a CPU's part of a session with these options (sample.c).
void sample_init_cpu(struct session_cpu *c, const struct sprofile_options *o,
                     bool hides_kernel, bool by_point);

// point_source.c: whether it samples this event. Any context.
bool point_event_valid(const char *event);
// What its samples on a CPU have cost so far, in TSC cycles.
u64 point_cycles(u32 cpu);

// source.c, under streams_lock. Acquires the source named `asked`, or for ""
// the default one. Starts it, unless it runs already: then *rate becomes its
// rate. 0, -ENODEV, -EBUSY, or the errors of its start. *instead_of: the source
// that sampler= names if it was not available, else "".
int source_acquire(const char *asked, struct sample_rate *rate,
                   const struct sample_source **out, const char **instead_of);
void source_release(const struct sample_source *source);

// session.c. Adds the session's counters to `out`: samples by mode, and the
// other counters of struct session_cpu. Any context.
void session_counts(const struct session *s, struct sprofile_info *out);

// The session in that slot, or NULL. streams_lock.
struct session *session_in(u32 slot);

// session_report.c, under streams_lock: a session has begun; `s` has ended and
// no sample is taken for it any more.
void report_begun(void);
void report_ended(const struct session *s);

// address_bins.c. The source whose samples are counted in bins, or NULL: read
// by sample_take.
extern const struct sample_source *bins_source;
void bins_sample(const struct trapframe *tf, u32 ticks);
