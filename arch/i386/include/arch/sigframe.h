// Signal frames on the user's stack: the machine's part of signals.
#pragma once

#include "lib/types.h"

struct trapframe;
struct siginfo;
struct sigaction_k;

// Builds the frame for a handler and points `tf` at it. `restore` is the mask
// that sigreturn brings back. -EFAULT when the stack cannot take it.
int sigframe_push(struct trapframe *tf, int sig, const struct siginfo *info,
                  const struct sigaction_k *action, u64 restore);
// Undoes it: restores registers, FPU and mask. -EFAULT when it is malformed.
int sigframe_pop(struct trapframe *tf, bool rt);
// A siginfo as user memory has it (128 bytes).
int siginfo_to_user(u32 addr, const struct siginfo *info);
// Is `esp` on the alternate stack of the current thread? NMI-safe.
bool on_altstack(u32 esp);
// That stack is another one; size 0: there is none. The thread is not on it.
void set_altstack(u32 base, u32 size);

// The current thread blocks these signals from now on; what is pending and not
// blocked is delivered on the way to user mode.
UPCALL void signal_restore_mask(u64 mask);
