// Trace points: places that report what happens to whoever listens, and cost a
// NOP while nobody does.
//
//     TRACE(sched_wake, .thread = t->tid, .cpu = cpu->id);
//
// The points, their fields and their records: include/strobe/points.def. The
// fields are computed only if somebody listens.
#pragma once

#include <strobe/trace.h>

#include "arch/instructions.h"
#include "lib/branch.h"

struct trace_listener {
    enum trace_number point;
    // Called on the CPU where it happens, with interrupts off, within whatever
    // the kernel does there: it takes no lock that may be held at a point, does
    // not sleep, and does nothing that itself passes the point.
    void (*fn)(const void *record);
    struct trace_listener *next; // the rest is kernel/trace/point.c's
    u32 users;
};

struct trace_point {
    struct branch branch; // on: somebody wants its events
    struct trace_listener *listeners;
    // Records the event in traces, and calls the listeners. Any context but
    // NMI. (kernel/trace/emit.c)
    void (*emit)(const void *record);
};
UPCALL extern struct trace_point trace_points[]; // TRACE_POINTS of them

// Somebody wants the point's events.
#define trace_wanted(point) branch_on(&trace_points[TRACE_##point].branch)
#define TRACE(point, ...) TRACE_IF(point, true, __VA_ARGS__)
#define TRACE_IF(point, condition, ...)                  \
    do {                                                 \
        if (trace_wanted(point) && (condition))          \
            trace_points[TRACE_##point].emit(            \
                &(struct trace_##point){ __VA_ARGS__ }); \
    } while (0)

// There are traces: trace_switched is to be called on every CPU when another
// thread has begun to run, before the first event in it. Interrupts are off.
UPCALL extern struct branch trace_is_on;
UPCALL void trace_switched(void);

// The two halves of sched_switch, if it is wanted: traces record it with the
// run queue's lock held, then listeners hear of it without. Interrupts are off.
UPCALL void trace_record_switch(const struct trace_sched_switch *record);
UPCALL void trace_notify_switch(const struct trace_sched_switch *record);

// The same for profile_sample, with interrupts off; NMIs too, so that this
// point is a test of a word, not of a branch, and has no listeners.
static ALWAYS_INLINE bool trace_wants_samples(void)
{
    return word_has(&trace_points[TRACE_profile_sample].branch.users, ~0u);
}
UPCALL void trace_record_sample(const struct trace_profile_sample *record);

// Adds a user of a listener. The first one makes it listen: all CPUs call it
// from the function's return on. After the last user's removal no CPU is in its
// function. Thread context without spin locks, may sleep.
UPCALL void trace_listen(struct trace_listener *l);
UPCALL void trace_unlisten(struct trace_listener *l);

// Prints the last events of the newest flight (strobe/trace.h) on all consoles;
// nothing if there is none. Any context. (kernel/trace/dump.c)
UPCALL void trace_print_last_events(void);
