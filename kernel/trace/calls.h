// Call tracing (strobe/calls.h): tables, call stacks, start, stop and report.
//
//     stubs.S     the entry and the return of a traced function
//     paths.c     what they do rarely; context switches and interrupts
//     arcs.c      arcs that are not in their first place
//     stacks.c    call stacks of threads; their end
//     calls.c     tables, patching, reports
//
// All states change while the machine is stopped. Which functions and tasks,
// and who may: kernel/profile/calls.h.
#pragma once

#include "arch/call_trace.h"
#include "lib/list.h"
#include <strobe/calls.h>

struct task;

// Recorded in rings: entries and exits; entries only. Not for CALLS_BEGIN.
#define CALLS_EVENTS 3
#define CALLS_ENTRIES 4

// What is traced. Changes while the machine is stopped.
struct call_trace {
    u32 mode; // CALLS_ARCS, CALLS_PATHS, CALLS_EVENTS, CALLS_ENTRIES
    bool running;
    const struct task *task;   // NULL: all
    const struct task *except; // not this one; NULL: no exception
    u32 depth;
};
extern struct call_trace call_trace;

// Whether calls are counted in tables, and whether they have frames.
static inline bool calls_are_counted(u32 mode)
{
    return mode == CALLS_ARCS || mode == CALLS_PATHS;
}
static inline bool calls_have_frames(u32 mode)
{
    return mode == CALLS_PATHS || mode == CALLS_EVENTS;
}

// --- call stacks (stacks.c) -------------------------------------------------

// Interrupts have as many frames, in addition to those of the thread.
#define CALL_SPARE_FRAMES 40u

struct call_stack {
    struct list node; // of all stacks that threads have
    struct thread *thread;
    struct call_frame *top; // while the thread does not run
    u64 clock;              // likewise
    u64 left;               // TSC when it left its CPU
    u32 cpu;                // whose nodes its frames name; CPU_MAX: none
    u32 root;               // CALLS_ROOT_...
    u32 depth;              // of nested calls that there are frames for
    // A return by trace_exit was in progress when the trace ended: its frame.
    u32 late_mark, late_back;
    struct call_frame frames[];
};

// A call stack that no thread has yet, for nested calls up to `depth`. Sleeps.
// NULL: no memory.
struct call_stack *call_stack_alloc(u32 depth);
void call_stack_free(struct call_stack *s);
// Gives `t` a stack, if it has none: else returns false. From its next switch
// on, or the begin of the trace, it is traced. The caller keeps the thread from
// ending. Any context but NMI.
bool call_stack_give(struct thread *t, struct call_stack *s, u32 root);
// For a new thread that no one else knows: a stack, if there is a trace that
// needs one, and memory. Sleeps.
void call_stack_new_thread(struct thread *t);
// The thread has ended and has left its kernel stack.
void call_stack_take(struct thread *t);
// Frees the stacks of all threads, but for those in which a late return is due.
// There is no trace.
void call_stacks_free(void);

// The machine is stopped:
void call_stacks_begin(u64 now);
// Restores all return addresses. `sp`: the stack pointer of this CPU.
void call_stacks_end(u32 sp);
// Counts the calls that have not returned, in `open` of the nodes.
void call_stacks_count_open(void);
// Adds the time up to `now` to the accounts that are open on each CPU, and the
// waits and interrupts up to now; `sign` -1 takes it away again.
void call_stacks_charge(u64 now, s64 sign);
// After they were added and all accounts were set to 0: opens them at `now`. (A
// thread that has ended will not come again, so its wait cannot be taken away.)
void call_stacks_restart(u64 now);

// --- nodes, switches, interrupts (paths.c) ----------------------------------

// Interrupts off, or the machine is stopped.
void call_nodes_init(struct call_cpu *c);
// Begins to trace the thread on the CPU.
void call_trace_come(struct call_cpu *c, u32 cpu, const struct thread *t,
                     u64 now);
void call_trace_interrupt(struct call_cpu *c, const struct trapframe *tf,
                          u64 now);

// --- the trace (calls.c) ----------------------------------------------------

// All of these: thread context, may sleep, one at a time (the caller's lock).
//
// Allocates the tables of all CPUs, of `entries` arcs or nodes, a power of two.
// If calls are recorded: none; `rings`, one for each CPU, are used until
// calls_free.
// From now on new threads get call stacks. 0 or -ENOMEM.
int calls_alloc(const struct call_trace *what, u32 entries,
                struct trace_ring *const *rings);
void calls_free(void); // the trace is stopped
// Begins to trace the functions with these sites, ascending, and ceases to:
// until then the array must exist.
void calls_start(const u32 *sites, u32 count);
void calls_stop(void);

// Fills the counts in `info`, and `records`, all of one instant, unless there
// are more than `max`: then only info->records. `reset`: all counts are 0 from
// then on. The tables are allocated.
void calls_report(struct calls_info *info, void *records, u32 max, bool reset);
