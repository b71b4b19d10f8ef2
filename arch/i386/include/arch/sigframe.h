// Signal frames on the user's stack: the machine-dependent part of signals.
#pragma once

#include "lib/types.h"

struct trapframe;
struct siginfo;
struct sigaction_k;

// Builds the frame for a handler and makes `tf` enter it. `restore` is the mask
// that sigreturn restores. -EFAULT if the stack is not writable.
int sigframe_push(struct trapframe *tf, int sig, const struct siginfo *info,
                  const struct sigaction_k *action, u64 restore);
// Sigreturn: restores registers, FPU and mask. -EFAULT if the frame is
// malformed.
int sigframe_pop(struct trapframe *tf, bool rt);
// Writes a siginfo in its user layout (128 bytes).
int siginfo_to_user(u32 addr, const struct siginfo *info);
// Whether `esp` is on the current thread's alternate stack. NMI-safe.
bool on_altstack(u32 esp);
// Sets the alternate stack; size 0: none. The thread must not be on it.
void set_altstack(u32 base, u32 size);

// Sets the current thread's signal mask; pending unblocked signals are
// delivered on the return to user mode.
UPCALL void signal_restore_mask(u64 mask);
