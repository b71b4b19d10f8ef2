// CPUs that hang are found by others.
#pragma once

// On several CPUs: from here on two look every 5 s what the others do. One
// that has work, and for 10 s takes no interrupt, or does not switch to who
// waits there, is told on the consoles, with where all CPUs are. Once, after
// the callouts work; interrupts on.
void hang_watch_start(void);
