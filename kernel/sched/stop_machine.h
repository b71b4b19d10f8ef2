// Rendezvous of all CPUs (stop_machine): runs a function while the machine is
// stopped.
#pragma once

#include "lib/types.h"

// Runs fn(arg) here, with interrupts off, while every other CPU waits in an
// interrupt that it took with interrupts enabled. So no CPU holds an
// interrupt-disabling lock, is inside the scheduler or changes accounts. NMIs
// are still taken. Takes as long as fn plus some microseconds. Every CPU
// executes a serialising instruction before it continues. Thread context,
// interrupts on, no locks held; may sleep.
void stop_machine(void (*fn)(void *arg), void *arg);
// The longest time so far that a rendezvous kept interrupts off, in TSC cycles,
// including the wait for the other CPUs. Thread context.
u64 stop_machine_longest(void);
