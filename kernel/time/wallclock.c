#include "kernel/time/wallclock.h"

#include "arch/clock.h"
#include "kernel/sync/spinlock.h"

static struct spinlock wallclock_lock = SPINLOCK_INIT("wall clock");
static s64 offset_ns; // guarded by wallclock_lock

static s64 get_offset(void)
{
    u32 flags = spin_lock_irq(&wallclock_lock);
    s64 offset = offset_ns;
    spin_unlock_irq(&wallclock_lock, flags);
    return offset;
}

static void set_offset(s64 offset)
{
    u32 flags = spin_lock_irq(&wallclock_lock);
    offset_ns = offset;
    spin_unlock_irq(&wallclock_lock, flags);
}

void wallclock_init(void)
{
    set_offset(rtc_read_seconds() * (s64)NSEC_PER_SEC - (s64)clock_now_ns());
}

s64 wallclock_now_ns(void)
{
    return get_offset() + (s64)clock_now_ns();
}

s64 wallclock_boot_ns(void)
{
    return get_offset();
}

void wallclock_set_ns(s64 now)
{
    set_offset(now - (s64)clock_now_ns());
    rtc_write_seconds(now / (s64)NSEC_PER_SEC);
}
