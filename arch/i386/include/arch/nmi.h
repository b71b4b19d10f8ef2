// Non-maskable interrupts: they come at any instruction, also where interrupts
// are off, and do not say who sent them. So one user at a time has them.
#pragma once

#include "lib/types.h"

struct trapframe;

// Called at each NMI, on any CPU, on the stack of what was interrupted. It
// takes no lock and never faults: IRET from a page fault would let the next NMI
// in. False: it knows that the NMI is not its own.
typedef bool (*nmi_handler_t)(const struct trapframe *tf);

// Takes the NMIs. 0 or -EBUSY. Any context but NMI.
int nmi_take(nmi_handler_t handler);
// Gives them back; the sources are silent by now. On other CPUs the handler may
// still run; it has ended when they have taken another interrupt.
void nmi_give_back(void);

// Sends one to each other CPU that is online. Any context.
void nmi_send_others(void);

// How many NMIs of this CPU nobody has claimed.
u32 nmi_unclaimed(u32 cpu);
