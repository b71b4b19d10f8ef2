// The registers of the interval timer. All functions are called between
// pit_enter and pit_leave (clock_private.h).
#pragma once

#include "lib/types.h"

#define PIT_HZ 1193182u

// Finds out whether the chip has the 8254's read-back command, by means of a
// counter, which it halts. Once, before the other functions.
void pit_identify(u32 counter);
bool pit_has_read_back(void);
// Starts a counter in a mode, with `count` of 1 to 65536; stops it.
#define PIT_ONE_SHOT 0u // mode 0: interrupt on terminal count
#define PIT_RATE 2u     // mode 2: counts from `count` down to 1, repeatedly
void pit_load(u32 counter, u32 mode, u32 count);
// Starts another one-shot. It accesses the counter's own port only, so it may
// interrupt any other access, or be called during one, but to this counter.
void pit_load_again(u32 counter, u32 count);
void pit_halt(u32 counter);
void pit_wait_loaded(u32 counter); // returns when it has loaded its count
// Whether a one-shot of `count` has ended. Without the read-back command a shot
// that ended more than 65536 - count ticks ago may seem to run. NMI-safe.
bool pit_ended(u32 counter, u32 count);
// NULL if a counter in PIT_RATE counts down steadily; else how it does not.
const char *pit_why_no_count(u32 counter, u32 count);
u16 pit_read(u32 counter);
// Latches the counters whose bits are set, with the read-back command all at
// one instant; each is then read.
void pit_latch(u32 counters);
u16 pit_read_latched(u32 counter);
