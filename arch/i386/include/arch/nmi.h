// Non-maskable interrupts. They occur at any instruction, also with interrupts
// off, and do not identify their source. So they have one owner at a time.
#pragma once

#include "lib/cpu_set.h"
#include "lib/types.h"

struct trapframe;

// An NMI owner: `fn` is called at each NMI, on any CPU, on the interrupted
// stack. It takes no lock and never faults: IRET from a page fault would let
// the next NMI in. False: the NMI is not the owner's.
struct nmi_owner {
    bool (*fn)(struct nmi_owner *owner, const struct trapframe *tf);
};

// Becomes the NMI owner. 0 or -EBUSY. Any context but NMI.
int nmi_claim(struct nmi_owner *owner);
// Gives up ownership, if `owner` has it; its sources must be silent. `fn` may
// still be running on other CPUs, until they have taken another interrupt.
void nmi_release(struct nmi_owner *owner);

// Sends an NMI to each other online CPU. Any context.
void nmi_send_others(void);

// Calls `fn` once on each other online CPU, in an NMI, and waits for a limited
// time. Returns the CPUs that have not answered; they may still call
// `fn`. The NMI owner is called for these NMIs as well. One caller at a time;
// any context but NMI.
struct cpu_set nmi_call_others(void (*fn)(const struct trapframe *tf));

// While on, NMIs in the stubs of call tracing are accounted
// (arch/call_trace.h: call_trace_nmi). Counts its users. Any context but NMI.
void nmi_watch_stubs(bool on);

// Number of unclaimed NMIs on a CPU.
u32 nmi_unclaimed(u32 cpu);
