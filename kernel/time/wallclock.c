#include "kernel/time/wallclock.h"

#include "kernel/base/errno.h"
#include "kernel/time/adjust.h"

// As on Linux, so that sums with it do not overflow: 30 years before the
// largest time in 64-bit nanoseconds.
#define WALL_MAX_SEC ((s64)(INT64_MAX / NSEC_PER_SEC) - 30ll * 365 * 24 * 3600)

void wallclock_init(void)
{
    timehands_set_wall(rtc_read_seconds() * (s64)NSEC_PER_SEC);
}

int wallclock_set_ns(s64 now)
{
    if (now < (s64)clock_now_ns() || now > WALL_MAX_SEC * (s64)NSEC_PER_SEC)
        return -EINVAL;
    timehands_set_wall(now);
    clock_adjust_reset();
    rtc_write_seconds(now / (s64)NSEC_PER_SEC);
    LINKER_SET_FOR_EACH(const struct wallclock_observer, o, wallclock_observers)
        (*o)->was_set();
    return 0;
}
