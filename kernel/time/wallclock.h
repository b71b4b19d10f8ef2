// The wall clock: CLOCK_REALTIME at start-up from the RTC, set by programs.
#pragma once

#include "kernel/time/timehands.h"
#include "lib/set.h"

void wallclock_init(void);
// Nanoseconds since 1970 (UTC). Any context, NMI too.
static inline s64 wallclock_now_ns(void)
{
    return clock_wall_ns();
}
// Wall time of the start (for btime in /proc/stat); it changes when the wall
// clock is set: what an absolute deadline in wall time is reckoned from.
static inline s64 wallclock_boot_ns(void)
{
    return clock_wall_offset();
}
// Sets the RTC too. Thread context. -EINVAL: before 1970, beyond 2232, or
// before the machine was started.
int wallclock_set_ns(s64 now);

// Who must know when the wall clock has been set: the time that it shows has
// jumped. Called after that, in thread context, without locks.
struct wallclock_observer {
    void (*was_set)(void);
};
#define WALLCLOCK_OBSERVER(o) LINKER_SET_ADD(wallclock_observers, o)
