// The wall clock: the monotonic clock plus an offset, set from the RTC at
// start-up and by settimeofday.
#pragma once

#include "lib/types.h"

void wallclock_init(void);
// Nanoseconds since 1970 (UTC). Any context but NMI.
s64 wallclock_now_ns(void);
void wallclock_set_ns(s64 now); // also sets the RTC
// Wall time of the start (for btime in /proc/stat).
s64 wallclock_boot_ns(void);
