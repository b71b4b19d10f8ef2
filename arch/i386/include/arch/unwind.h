// Call chains: what the interrupted code was called by. In any context, NMI
// too: nothing here takes a lock, waits or faults.
//
// A chain is a list of code addresses, the innermost first. One that was
// interrupted (the first, and where a chain crosses an interrupt) is stored as
// it is, or, if it is not the first, plus 1; all others are return addresses.
// So the instruction of every entry but the first is the one before its
// address.
#pragma once

#include "arch/peek.h"

struct trapframe;

// What a chain in user mode starts from.
struct user_context {
    u32 eip, esp, ebp;
};

// The kernel's part of the chain, from `tf` (which is not the user's) outwards:
// handlers that were interrupted themselves are in it, the sampler's own frames
// are not. Returns the number of entries, at most `max` (>= 1); *cut tells
// whether the chain goes on beyond them, or could not be followed.
u32 unwind_kernel(const struct trapframe *tf, u32 *pcs, u32 max, bool *cut);

// Where the running thread left user mode; `tf` is what was interrupted, in
// either mode. False: it has no user mode.
bool unwind_user_context(const struct trapframe *tf, struct user_context *out);

enum unwind_end {
    UNWIND_COMPLETE,
    UNWIND_CUT, // it goes on: beyond `max`, in a page that is not present, or
                // in memory that is not loaded, in the middle of a switch
    UNWIND_GAP, // ebp was no frame pointer: callers between the first entry and
                // the second, if there is one, are missing
};

// The first `words` words from the user's stack pointer on (the return address
// of a function without a frame is among them): how many could be read.
u32 user_stack_top(struct user_peek *p, u32 esp, u32 *out, u32 words);

// The user's part, by frame pointers through the pages that are present. As
// unwind_kernel. `top`, `words`: what user_stack_top gave. *first is the frame
// that the second entry is from, 0: there is none.
u32 unwind_user(struct user_peek *p, const struct user_context *u,
                const u32 *top, u32 words, u32 *pcs, u32 max, u32 *first,
                enum unwind_end *end);
