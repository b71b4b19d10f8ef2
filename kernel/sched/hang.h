// CPUs that hang are found by others.
#pragma once

#include "lib/types.h"

// On several CPUs: from now on two CPUs check the others every 5 s. A CPU that
// has work and, for 10 s, takes no interrupt, or does not switch to a thread in
// its queue, is reported on the consoles, with the backtraces of all CPUs. Call
// once, after the callouts work; interrupts on.
void hang_watch_start(void);

// Prints on the consoles, with `why`, what each CPU does: thread, backtrace,
// account, locks where LOCKDEP knows them. The other CPUs tell it in an NMI, so
// that they may have interrupts off. Any context but NMI. Takes no lock.
UPCALL void say_where_cpus_are(const char *why);
