// The clock of the CPUs' cores: what is known about it, and its average rate.
#pragma once

#include <strobe/core_clock.h>

// Fills in all but the cycles, which are 0. Thread context that may sleep; once
// the other CPUs are up.
void core_clock_describe(struct strobe_core_clock *out);
// Reads the cycles of all CPUs until now; 0 where they are not measured.
// Interrupts on.
void core_clock_read(struct strobe_core_clock *out);
