// Page faults (fault.c), as trap.c needs them.
#pragma once

#include "arch/trap.h"

// Handle a page fault; called with interrupts off, CR2 not yet overwritten.
void fault_from_user(struct trapframe *tf); // interrupts are on when it returns
void fault_from_kernel(struct trapframe *tf);

// Whether `esp` has run down into the guard page below the current stack.
bool fault_is_stack_overflow(u32 esp);
