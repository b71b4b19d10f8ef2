#include "kernel/syscall/user_types.h"

#include "arch/clock.h"
#include "kernel/base/errno.h"
#include "kernel/sync/waitq.h"
#include "kernel/task/task.h"

// The maximum time, in the year 2262; and the maximum duration, 146 years, so
// that its sum with the uptime is a valid time.
#define TIME_MAX_NS ((u64)INT64_MAX)
#define TIME_MAX_SEC (TIME_MAX_NS / NSEC_PER_SEC)
#define DURATION_MAX_NS (1ull << 62)

int time_from_user(u32 addr, bool wide, u64 *ns)
{
    struct timespec64 t;
    if (wide) {
        if (copy_from_user(&t, addr, sizeof(t)))
            return -EFAULT;
    } else {
        struct timespec32 narrow;
        if (copy_from_user(&narrow, addr, sizeof(narrow)))
            return -EFAULT;
        t.sec = narrow.sec;
        t.nsec = narrow.nsec;
    }
    if (t.sec < 0 || t.nsec < 0 || t.nsec >= (s32)NSEC_PER_SEC)
        return -EINVAL;
    *ns = (u64)t.sec >= TIME_MAX_SEC ? TIME_MAX_NS
                                     : (u64)t.sec * NSEC_PER_SEC + (u32)t.nsec;
    return 0;
}

u64 deadline_after(u64 ns)
{
    return clock_now_ns() + MIN(ns, DURATION_MAX_NS);
}

int deadline_from_user(u32 addr, bool wide, u64 *deadline)
{
    *deadline = WAIT_FOREVER;
    if (!addr)
        return 0;
    u64 ns;
    int err = time_from_user(addr, wide, &ns);
    if (!err)
        *deadline = deadline_after(ns);
    return err;
}

bool may_set_time(void)
{
    return is_root();
}
