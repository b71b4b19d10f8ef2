// Non-maskable interrupts: they come at any instruction, also where interrupts
// are off, and do not say who sent them. So one user at a time has them.
#pragma once

#include "lib/types.h"

struct trapframe;

// Who has the NMIs: `fn` is called at each, on any CPU, on the stack of what
// was interrupted. It takes no lock and never faults: IRET from a page fault
// would let the next NMI in. False: it knows that the NMI is not its own.
struct nmi_user {
    bool (*fn)(struct nmi_user *user, const struct trapframe *tf);
};

// Takes the NMIs. 0 or -EBUSY. Any context but NMI.
int nmi_take(struct nmi_user *user);
// Gives them back, if `user` has them; its sources are silent by now. On other
// CPUs `fn` may still run; it has ended when they have taken another interrupt.
void nmi_give_back(struct nmi_user *user);

// Sends one to each other CPU that is online. Any context.
void nmi_send_others(void);

// Calls `fn` once on each other CPU that is online, in an NMI, and waits for
// them a moment. Bits of those that have not come; they may yet. Who has the
// NMIs is called for it as well. One caller at a time; any context but NMI.
u32 nmi_ask_others(void (*fn)(const struct trapframe *tf));

// How many NMIs of this CPU nobody has claimed.
u32 nmi_unclaimed(u32 cpu);
