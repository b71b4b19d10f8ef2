// Looking at the whole machine while it stands still.
#pragma once

#include "lib/types.h"

// Runs fn(arg) once, on one of the CPUs, with interrupts off, while every other
// CPU waits in an interrupt that came where its interrupts were on. So nobody
// holds a lock that disables them, is inside the scheduler or changes accounts;
// the caller is here. NMIs go on. Takes as long as fn and some microseconds.
// Thread context, interrupts on, no locks held; may sleep.
void meeting_call(void (*fn)(void *arg), void *arg);
// TSC cycles: the longest that interrupts were off for one so far, the wait for
// the other CPUs included. Thread context.
u64 meeting_longest(void);
