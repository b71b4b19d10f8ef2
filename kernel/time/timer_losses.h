// Whether a timer has failed: interrupts that were found lost, one after the
// other.
//
// An interrupt is found lost when it is overdue. That alone says nothing of the
// timer: the CPU may have interrupts off, or its host may not run it. So the
// CPU is sent an interrupt in place of the timer's, with a vector of its own.
// If it has taken that one, and none of the timer's, the timer's did not come.
#pragma once

#include "lib/types.h"

struct timer_losses {
    u32 count;    // one after the other; marked
    u64 shots;    // the timer's interrupts when the last one was found
    u64 replaced; // those that were sent in their place, and taken by then
};

// One more is found lost. `asked`: another one was sent in its place the last
// time, and is this time.
static inline void timer_losses_add(struct timer_losses *l, u64 shots,
                                    u64 replaced, bool asked)
{
    if (l->count && asked && replaced == l->replaced)
        return;
    WRITE_ONCE(l->count, shots == l->shots ? l->count + 1 : 1);
    l->shots = shots;
    l->replaced = replaced;
}
