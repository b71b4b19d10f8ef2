// What a traced call costs outside of its stubs' two readings of the TSC, by
// experiment: one function calls another, which is empty. Each is timed without
// the trace, where only the sum of both is seen, and with it.
//
// Times are of a small and of a big number of calls. The difference is that of
// the calls alone: what is done once, and the reading of the TSC, is in both.
//
// The call instruction is the caller's; it is timed by itself. What the empty
// function takes without the trace is the rest of the difference between a loop
// that calls it and an empty loop.
#include "arch/call_trace.h"
#include "arch/cpu.h"
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/call_trace.h"
#include "kernel/trace/calls.h"

#define SMALL 32u // calls
#define BIG (SMALL + 128)
#define TRIES 4u // the least counts

static NOINLINE void callee(void)
{
    barrier();
}

static NOINLINE void calling_loop(u32 n)
{
    for (u32 i = 0; i < n; i++)
        callee();
}

static NOINLINE void empty_loop(u32 n)
{
    for (u32 i = 0; i < n; i++)
        barrier();
}

static NOINLINE void call_instructions(u32 n)
{
    for (u32 i = 0; i < n; i++)
        call_trace_call_only();
}

static NOINLINE void no_call_instructions(u32 n)
{
    for (u32 i = 0; i < n; i++)
        call_trace_no_call();
}

// What is above `least`; a negative difference is an error of measurement.
static u32 above(u32 n, u32 least)
{
    return n > least ? n - least : 0;
}

// --- without the trace ------------------------------------------------------

static u32 least_time_of(void (*loop)(u32), u32 n)
{
    u32 least = -1u;
    for (u32 i = 0; i < TRIES; i++) {
        u32 flags = irq_save();
        u64 began = rdtsc();
        loop(n);
        least = MIN(least, (u32)(rdtsc() - began));
        irq_restore(flags);
    }
    return least;
}

// Of BIG - SMALL calls.
static u32 time_of(void (*loop)(u32))
{
    return above(least_time_of(loop, BIG), least_time_of(loop, SMALL));
}

static u32 for_each_call(u32 cycles)
{
    return (cycles + (BIG - SMALL) / 2) / (BIG - SMALL);
}

// --- with the trace ---------------------------------------------------------

// Own time of the two functions in the records, of all their calls.
struct own_times {
    u32 caller, callee;
};

static struct own_times find_times(const struct calls_node *nodes, u32 count)
{
    struct own_times t = { 0, 0 };
    for (u32 i = 0; i < count; i++) {
        if (nodes[i].function == linked_address((u32)calling_loop))
            t.caller += (u32)nodes[i].own;
        if (nodes[i].function == linked_address((u32)callee))
            t.callee += (u32)nodes[i].own;
    }
    return t;
}

static u32 record_count(void)
{
    return (CALLS_ROOTS + 2) * cpu_count;
}

static struct own_times least_traced(struct calls_node *nodes, u32 n)
{
    struct own_times least = { -1u, -1u };
    for (u32 i = 0; i < TRIES; i++) {
        struct calls_info info;
        u32 flags = irq_save();
        calling_loop(n);
        irq_restore(flags);
        calls_report(&info, nodes, record_count(), true);
        struct own_times t = find_times(nodes, info.records);
        least.caller = MIN(least.caller, t.caller);
        least.callee = MIN(least.callee, t.callee);
    }
    return least;
}

// Of BIG - SMALL calls.
static void traced_times(struct calls_node *nodes, struct own_times *times)
{
    u32 sites[2] = { (u32)callee, (u32)calling_loop };
    if (sites[0] > sites[1]) {
        sites[0] = (u32)calling_loop;
        sites[1] = (u32)callee;
    }
    calls_start(sites, 2);
    struct own_times small = least_traced(nodes, SMALL);
    struct own_times big = least_traced(nodes, BIG);
    calls_stop();
    times->caller = above(big.caller, small.caller);
    times->callee = above(big.callee, small.callee);
}

static int trace_for_a_moment(struct own_times *times)
{
    struct calls_node *nodes = kmalloc(record_count() * sizeof(*nodes));
    struct call_stack *s = call_stack_alloc(2);
    int err = nodes && s ? 0 : -ENOMEM;
    if (!err)
        err = calls_alloc(&(struct call_trace){ CALLS_PATHS, .depth = 2 }, 8,
                          NULL);
    if (!err) {
        if (call_stack_give(current, s, CALLS_ROOT_THREADS))
            s = NULL;
        traced_times(nodes, times);
        calls_free();
    }
    call_stack_free(s);
    kfree(nodes);
    return err;
}

int call_trace_measure(u32 *caller, u32 *own)
{
    u32 loop = time_of(empty_loop), both = above(time_of(calling_loop), loop);
    u32 call = above(time_of(call_instructions), time_of(no_call_instructions));
    struct own_times traced;
    int err = trace_for_a_moment(&traced);
    if (err)
        return err;
    *caller = for_each_call(above(traced.caller, loop + call));
    *own = for_each_call(above(traced.callee, above(both, call)));
    return 0;
}
