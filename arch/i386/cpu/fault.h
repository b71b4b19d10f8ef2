// Page faults (fault.c), as trap.c needs them.
#pragma once

#include "arch/trap.h"

// Handle a page fault; called with interrupts off, CR2 not yet overwritten.
void fault_from_user(struct trapframe *tf); // interrupts are on when it returns
void fault_from_kernel(struct trapframe *tf);

// There is no memory for what the current task needs to go on, the page at
// `address`. True: it is worth another try, for another task has been ended
// (kernel/sched/oom.h). False: this one is killed on its way to user mode.
// Thread context, interrupts on; sleeps.
bool fault_out_of_memory(u32 address);

// Whether `esp` has run down into the guard page below the current stack.
bool fault_is_stack_overflow(u32 esp);
