// The wall clock, CLOCK_REALTIME: read from the RTC at start-up, set by
// programs.
#pragma once

#include "kernel/time/timehands.h"
#include "lib/set.h"

void wallclock_init(void);
// Nanoseconds since 1970 (UTC). Any context, NMI too.
static inline s64 wallclock_now_ns(void)
{
    return clock_wall_ns();
}
// Wall time at start-up (for btime in /proc/stat), from which absolute
// deadlines in wall time are computed. It changes when the wall clock is set.
static inline s64 wallclock_boot_ns(void)
{
    return clock_wall_offset();
}
// Sets the wall clock and the RTC. Thread context. -EINVAL: before 1970, beyond
// 2232, or before the machine was started.
int wallclock_set_ns(s64 now);

// An observer of settings of the wall clock, which make its time jump. Called
// after that, in thread context, without locks.
struct wallclock_observer {
    void (*was_set)(void);
};
#define WALLCLOCK_OBSERVER(o) LINKER_SET_ADD(wallclock_observers, o)
