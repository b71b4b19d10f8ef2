// The hang watch: CPUs detect other CPUs that hang.
#pragma once

#include "lib/types.h"

// From now on two CPUs check all other CPUs every 5 s; no effect with one CPU.
// A CPU that has work and for 10 s takes no interrupt, or does not switch to a
// thread in its queue, is reported on the consoles with the backtraces of all
// CPUs. Call once, after the callouts work; interrupts on.
void hang_watch_start(void);

// Prints `why` on the consoles and what each CPU does: thread, backtrace, open
// account, and with LOCKDEP the locks held. The other CPUs report in an NMI, so
// they may have interrupts off. Any context but NMI. Takes no lock.
UPCALL void print_cpu_locations(const char *why);
