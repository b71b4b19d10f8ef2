// The recorded calls of threads that do not run: a place for each thread id,
// modulo their number. Of two threads with the same place the later one has it.
//
// A thread may run on another CPU, and leave it, before its calls are stored by
// the first. So each place has the time at which its thread last left or
// entered a CPU: a store of an earlier time is dropped, and a thread finds its
// last calls or none. The caller serialises all accesses.
#pragma once

#include "arch/lbr.h"

#define BRANCH_PLACES 256u

struct branch_place {
    u32 tid;  // 0: free
    u64 time; // TSC
    struct lbr_stack stack;
};

// `tid` left a CPU at `time` with these calls.
static inline void branch_place_put(struct branch_place *places, u32 tid,
                                    u64 time, const struct lbr_stack *stack)
{
    struct branch_place *p = &places[tid % BRANCH_PLACES];
    if ((s64)(time - p->time) <= 0)
        return;
    p->tid = tid;
    p->time = time;
    p->stack = *stack;
}

// `tid` enters a CPU at `time`. An empty stack: its calls are not known.
static inline void branch_place_take(struct branch_place *places, u32 tid,
                                     u64 time, struct lbr_stack *stack)
{
    struct branch_place *p = &places[tid % BRANCH_PLACES];
    stack->count = 0;
    if (p->tid == tid)
        *stack = p->stack;
    p->tid = tid;
    p->time = time;
    p->stack.count = 0;
}
