// Call tracing: what the stubs at the entries of functions, and at their
// returns, read and write.
//
// A patched entry (arch/text.h) calls one of four stubs
// (arch/i386/text/stubs.S) before the function has done anything. trace_arc
// counts the pair of caller and function. trace_path also replaces the return
// address on the stack by trace_exit, and keeps the real one in a *frame* of
// the thread's call stack; trace_exit closes the frame and returns to it.
// trace_enter and trace_leave do the same, and instead of counting they write
// records into a ring (arch/trace_ring.h). trace_call only records the call:
// the function's return is not seen, and no frame is needed.
//
// The stubs run with interrupts off, never in an NMI, and use the members of
// struct call_cpu of their CPU. What they do rarely is in kernel/trace/paths.c
// and arcs.c. Who chooses, starts and reads: kernel/trace/calls.h.
#pragma once

#include "lib/branch.h"

struct thread;
struct trace_place;
struct trace_ring;
struct trapframe;
struct call_stack;

// A call path on one CPU: a function, called by the node's parent. An account
// that is open has had the TSC subtracted, as in the ledger: `own` of the node
// that runs now.
struct call_node {
    u32 function; // the address behind its entry's site; or CALLS_ROOT_...
    struct call_node *last; // the child that was called last; never NULL
    u64 calls;
    u64 own;
    u64 tracing;
    u64 longest;
    u32 shortest;
    struct call_node *parent; // of a root: itself
    struct call_node *next;   // in its chain of the hash table
    u32 open;                 // used while a report is made
    u64 blocked, interrupted;
};

// A call that has not returned. The first frame of a stack is that of the root,
// which no function belongs to. An interrupt's frame, with the address of its
// struct trapframe as `mark`, is below those of its handler.
struct call_frame {
    u32 mark; // address of the return address, minus CALL_MARK; ~0: a root's
    u32 back; // the real return address; of an interrupt: the limit before it
    union {
        struct call_node *node;
        u32 function; // of trace_enter: the entry address; CALLS_ROOT_...
    };
    u64 start; // the thread's own time when it began
};
#define CALL_MARK 28u // what trace_path has pushed

struct call_arc {
    u32 from, to; // `from` 0: free
    u64 count;
};

// Part of struct cpu; zero until the first trace. Of its own CPU, with
// interrupts off.
struct call_cpu {
    // The innermost frame of the running context, or a frame of no function.
    struct call_frame *top;
    // The last frame that may be used, of trace_path and of trace_enter; NULL:
    // none. Two, since a thread may be preempted at the beginning of a stub,
    // and go on when the next trace, of the other kind, runs.
    struct call_frame *limit, *event_limit;
    // The thread's own time, minus the TSC. In a stub: its own time.
    u64 clock;
    struct call_arc *arcs; // NULL: no arc is counted now
    u32 arc_mask;          // bytes: the number of arcs - 1, times their size
    struct call_node **buckets;
    u32 bucket_mask; // bytes: likewise
    u64 too_deep;
    struct trace_ring *ring; // where trace_enter and trace_leave write
    // Where trace_call writes: the ring's, or `call_untraced`. NULL before the
    // first trace.
    const struct trace_place *place;
    // The rest is kernel/trace's.
    struct call_stack *stack; // of the running thread; NULL: not traced
    struct call_stack *left;  // of the thread that ran before it
    struct call_frame none;   // `top` while `stack` is NULL
    struct call_node *nodes;  // the roots first
    struct call_arc *all_arcs;
    u32 nodes_used, arcs_used, most; // entries; of `most` there are
    u64 irq_began;                   // TSC
    u64 overflow, no_frames;
};

// On while functions may be traced: call_switched and the others are called.
UPCALL extern struct branch call_tracing;

// The stubs' entry points, and the end of their code. Not functions to call.
extern const char trace_arc[], trace_path[], trace_enter[], trace_call[];
extern const char trace_exit[], trace_leave[], trace_code_end[];
// No record fits there: what is called while it is a CPU's `place` is not
// traced, and not counted as lost.
UPCALL extern const struct trace_place call_untraced;
// Pairs of addresses: where the stubs have an account open (stubs.S).
extern const u32 trace_outside[], trace_outside_end[];

// Whether `pc` is in one of the stubs.
static ALWAYS_INLINE bool call_trace_is_stub(u32 pc)
{
    return pc - (u32)trace_arc < (u32)(trace_code_end - trace_arc);
}

// What a call instruction takes is the difference between these two.
static ALWAYS_INLINE void call_trace_call_only(void)
{
    __asm__ volatile("call 1f\n1:\taddl $4, %%esp" ::: "memory", "cc");
}
static ALWAYS_INLINE void call_trace_no_call(void)
{
    __asm__ volatile("addl $0, %%esp" ::: "memory", "cc");
}

// Whether a return address is one that the stubs have put in place.
static ALWAYS_INLINE bool call_trace_is_exit(u32 back)
{
    return back == (u32)trace_exit || back == (u32)trace_leave;
}

// --- called by the stubs (interrupts off) -----------------------------------

// Closes the frames of functions that have been left without a return: those
// whose mark is at or below `mark`.
UPCALL void call_trace_drop_stale(u64 now, u32 mark);
// A new node; NULL: no free one, which is counted.
UPCALL struct call_node *call_trace_new_node(struct call_node *parent,
                                             u32 function);
// A return by trace_exit whose frame is not the innermost one. Returns the real
// return address.
UPCALL u32 call_trace_odd_return(u64 now, u32 mark);
// Counts an arc that is not in its first place.
UPCALL void call_trace_slow_arc(u32 to, u32 from);

// --- called while call_tracing is on (interrupts off) -----------------------

// Before the switch of stacks to the current thread, at the time at which the
// ledger has switched to it.
UPCALL void call_trace_switch(u64 now);
// After it, on the stack of the next thread.
UPCALL void call_trace_switched(void);
// The thread goes to user mode: its kernel stack will be empty. Interrupts off.
UPCALL void call_trace_enter_user(void);
// An interrupt's handler begins and ends, at the times of the ledger.
UPCALL void call_trace_irq_begin(const struct trapframe *tf, u64 now);
UPCALL void call_trace_irq_end(const struct trapframe *tf, u64 now);

// An NMI that interrupted a stub, at `pc`, has taken `spent` cycles. They are
// the tracing's, also where the stub has a function's account open. (An NMI
// elsewhere is the time of what it interrupted.) At the end of the NMI.
UPCALL void call_trace_nmi(u32 pc, u32 spent);

// --- reading stacks ---------------------------------------------------------

// The real return address of the function whose return address, at `slot` of a
// stack in use on this CPU, is a stub's. 0: not known. Any context; no locks.
UPCALL u32 call_trace_back(u32 slot);
// The entry addresses of the functions whose return address is there, innermost
// first: of several (`index` 1, 2...), all but one have left by a jump to the
// next (tail calls). 0: no more, or not known. As call_trace_back.
UPCALL u32 call_trace_function(u32 slot, u32 index);
// As call_trace_back, for __builtin_return_address(0) of a function that has no
// patchable entry, in that function: not trace_exit if a traced function jumped
// to it.
UPCALL u32 call_trace_caller(u32 back);
