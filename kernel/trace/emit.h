// What records the events of trace points in the rings of traces: for the kinds
// of streams that trace (kernel/profile/trace_session.c).
#pragma once

#include "arch/cpu.h"
#include "kernel/trace/record.h"

struct sensor;
struct task;

// A CPU's part of a trace, written by that CPU alone.
struct trace_cpu {
    struct trace_ring ring;
    u32 direct;    // points, see emit.c; marked
    bool chosen;   // the thread that runs is one whose events are recorded
    bool switched; // it, or the one that ran before the last switch
    bool left;     // the one that ran before
    struct sensor
        *sensor; // the ring as one (kernel/profile); NULL: it is not one
};

struct trace_target {
    struct trace_target *next; // in the list of all
    const struct task *only;   // only this one; NULL: all,
    const struct task *except; // but for this one; NULL: no exception
    u32 points;                // bit N: point N is recorded; marked
    struct trace_cpu cpu[];    // of each CPU
};

// What an event of 16 bytes costs, in cycles, from the call at its point to the
// return. The target has rings, which are empty, and is not in the list yet.
// One caller at a time.
u32 trace_target_measure(struct trace_target *t);
// Puts a complete one into the list of all, which is walked with interrupts
// off, without a lock; and takes it out: until every CPU has passed through an
// interrupt, it may be in use. The caller's lock guards changes. Thread
// context, may sleep.
void trace_target_add(struct trace_target *t);
void trace_target_remove(struct trace_target *t);
// The list of all: the newest one. Interrupts are off, or the machine is being
// reported on.
const struct trace_target *trace_targets(void);
// Sets which points it records, and switches them on or off. On return from
// 0 points no CPU writes into its rings, but for the trace of calls. Thread
// context, may sleep.
void trace_target_set(struct trace_target *t, u32 points);
// What is recorded of a switch to another thread beside the point: of the one
// that has left. Interrupts are off.
void trace_record_pmc(const struct trace_sched_pmc *record);
// To be called when listeners of a point have changed. Thread context.
void trace_update_direct(void);
