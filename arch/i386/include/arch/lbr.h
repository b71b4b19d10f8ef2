// Last branch records as a stack of user calls: the CPU pushes each call of
// user code and pops at each return, so the callers of code without frame
// pointers are known (arch/i386/pmu/lbr.c).
#pragma once

#include "lib/types.h"

#define LBR_DEPTH_MAX 32u

// Outermost first.
struct lbr_stack {
    u32 count;
    u32 from[LBR_DEPTH_MAX], to[LBR_DEPTH_MAX]; // call instruction, its target
};

// NULL, or why they cannot be used. Thread context that may sleep, here and
// below unless stated otherwise; once the other CPUs are up.
const char *lbr_why_not(void);
// The number of calls that are kept; of the CPU that keeps the fewest.
u32 lbr_depth(void);
// Begins and ends recording on all CPUs, with empty stacks.
void lbr_start_all(void);
void lbr_stop_all(void);

// This CPU, interrupts off; not in NMIs. While recording: stores the stack, or
// replaces it. A stack that the CPU has stopped to record is empty: it is
// recorded again from the next lbr_load on.
void lbr_save(struct lbr_stack *out);
void lbr_load(const struct lbr_stack *in);
// Writes the addresses behind the first byte of the call instructions,
// innermost first, to `out`; returns their number, at most `max`. Calls of the
// next instruction are left out: they have no frame. This CPU; any context that
// does not interrupt lbr_load.
u32 lbr_callers(u32 *out, u32 max);
