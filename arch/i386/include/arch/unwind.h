// Call chains: what the interrupted code was called by. In any context, NMI
// too: nothing here takes a lock, waits or faults.
//
// A chain is a list of code addresses, the innermost first. One that was
// interrupted (the first, and where a chain crosses an interrupt) is stored as
// it is, or, if it is not the first, plus 1; all others are return addresses.
// So the instruction of every entry but the first is the one before its
// address.
#pragma once

#include "lib/types.h"

struct trapframe;

// The kernel's part of the chain, from `tf` (which is not the user's) outwards:
// handlers that were interrupted themselves are in it, the sampler's own frames
// are not. Returns the number of entries, at most `max` (>= 1); *cut tells
// whether the chain goes on beyond them, or could not be followed.
u32 unwind_kernel(const struct trapframe *tf, u32 *pcs, u32 max, bool *cut);

// What was found of user mode.
struct user_part {
    u32 stack_words; // more than words of the stack by 2, or 3
    u32 depth;       // entries of the chain
    u32 flags;       // SPROFILE_F_USER_...: not 0 is rare. CUT is also memory
                     // that is not loaded, in the middle of a switch.
};

// What a sample tells of user mode, as it lies in the record (strobe/kbox.h);
// `tf`, which is the user's, is what was interrupted. Writes the stack's part,
// SPROFILE_STACK_WORDS of it or as many as could be read (the return address of
// a function without a frame is among them), the chain, by frame pointers
// through the pages that are present, and signal frames. Returns where that
// ends.
u32 *unwind_user(const struct trapframe *tf, u32 *out, struct user_part *part);
// The same where the kernel was interrupted: of where it was entered from.
// Nothing, if the thread has no user mode.
u32 *unwind_left_user(const struct trapframe *tf, u32 *out,
                      struct user_part *part);
// Either of them, with SPROFILE_DEEP_WORDS of the stack.
u32 *unwind_user_deep(const struct trapframe *tf, u32 *out,
                      struct user_part *part);
