// How long to wait for a timer's interrupt before it is called silent: time in
// which this CPU runs.
//
// After a hypervisor has paused the machine the timer may resume later than the
// CPU: QEMU's device thread sleeps until its next timer is due, up to 55 ms for
// the PIT of the firmware. While QEMU is stopped that timer becomes due, but
// the sleep does not go on; and timers that are started behind it do not end
// it. So the wait starts again after a pause, but not for ever.
//
// Pure arithmetic.
#pragma once

#include "lib/types.h"

#define WAIT_STEP_NS 10000u            // between two reads, at least
#define WAIT_PAUSE_NS 1000000u         // a longer step was a pause
#define WAIT_UNDISTURBED_NS 100000000u // allows for a busy hypervisor
#define WAIT_LIMIT_NS 1000000000u

struct interrupt_wait {
    u32 ran, undisturbed; // ns
};

// After a step that took `ns`: whether to wait on. Each step counts as
// WAIT_STEP_NS, whatever pauses it had.
static inline bool interrupt_wait_more(struct interrupt_wait *w, u64 ns)
{
    w->ran += WAIT_STEP_NS;
    w->undisturbed = ns > WAIT_PAUSE_NS ? 0 : w->undisturbed + WAIT_STEP_NS;
    return w->ran < WAIT_LIMIT_NS && w->undisturbed < WAIT_UNDISTURBED_NS;
}
