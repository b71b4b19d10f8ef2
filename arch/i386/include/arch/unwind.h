// Unwinder: call chains of interrupted code. Any context, NMI included: it
// takes no lock, does not wait and does not fault.
//
// A chain is a list of code addresses, innermost first. The first entry is the
// interrupted address itself. Where a chain crosses an interrupt, the entry is
// the interrupted address plus 1; all others are return addresses. So for every
// entry but the first, the instruction is the one before the entry's address.
#pragma once

#include "lib/types.h"

struct trapframe;

// The kernel's part of the chain, by linked addresses (arch/mmu.h), from `tf`
// (a kernel frame) outwards, with the stack pointer of its context:
// trap_kernel_stack() if it was interrupted. It includes handlers that were
// interrupted themselves, but not the sampler's own frames. Returns the number
// of entries, at most `max` (>= 1). *cut: the chain continues beyond them, or
// could not be followed.
u32 unwind_kernel(const struct trapframe *tf, u32 esp, u32 *pcs, u32 max,
                  bool *cut);

// The context of a trace point, where what recorded the event will return. For
// points of the heap and of the locks (linker.ld: helpers) it is that of the
// caller of their functions. `frame`: the frame address of a listener, which
// keeps it. trap_stack() is the context's stack pointer; whether interrupts are
// on there is not known: the frame says so.
void unwind_caller(struct trapframe *tf, const void *frame);
// The same for a point in the handling of an exception or a system call: the
// context that it interrupted. For a system call by the vDSO, where that
// returns to.
void unwind_interrupted(struct trapframe *tf, const void *frame);

// The size and state of a sample's user part.
struct user_part {
    u32 stack_words; // words of the stack, plus 2 or 3; before
                     // unwind_user_deep: how many are wanted
    u32 depth;       // entries of the chain
    u32 flags;       // SPROFILE_F_USER_...: rarely nonzero, but for MORE. CUT
                     // also marks memory that is not loaded, in the middle of
                     // a switch.
};

// Writes the user part of a sample, in the record's layout (strobe/kbox.h), for
// the interrupted user frame `tf`: SPROFILE_STACK_WORDS of the stack or as many
// as could be read (they include the return address of a function without a
// frame), the chain by frame pointers through the pages that are present, and
// signal frames. Returns the end of what was written.
u32 *unwind_user(const struct trapframe *tf, u32 *out, struct user_part *part);
// The same if the kernel was interrupted: for the user registers at the
// kernel's entry. Writes nothing if the thread has no user mode.
u32 *unwind_left_user(const struct trapframe *tf, u32 *out,
                      struct user_part *part);
// Stores the first address of that chain alone. False: no user mode.
bool unwind_user_pc(const struct trapframe *tf, u32 *out);
// Either of the two, with up to part->stack_words (not 0) of the stack.
u32 *unwind_user_deep(const struct trapframe *tf, u32 *out,
                      struct user_part *part);
