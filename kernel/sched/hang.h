// CPUs that hang are found by others.
#pragma once

// On several CPUs: from now on two CPUs check the others every 5 s. A CPU that
// has work and, for 10 s, takes no interrupt, or does not switch to a thread in
// its queue, is reported on the consoles, with the backtraces of all CPUs. Call
// once, after the callouts work; interrupts on.
void hang_watch_start(void);
