#include "kernel/syscall/user_types.h"

#include "arch/clock.h"
#include "kernel/errno.h"
#include "kernel/sync/waitq.h"
#include "lib/math64.h"

// Times are kept below this, so that sums do not wrap: 146 years.
#define TIME_MAX_NS (1ull << 62)
#define TIME_MAX_SEC (TIME_MAX_NS / NSEC_PER_SEC)

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

int time_to_user(u32 addr, bool wide, u64 ns)
{
    u32 nsec;
    u64 sec = divide_u64(ns, (u32)NSEC_PER_SEC, &nsec);
    if (wide) {
        struct timespec64 t = { (s64)sec, (s32)nsec, 0 };
        return copy_to_user(addr, &t, sizeof(t));
    }
    struct timespec32 t = { (s32)sec, (s32)nsec };
    return copy_to_user(addr, &t, sizeof(t));
}

u64 deadline_after(u64 ns)
{
    return clock_now_ns() + MIN(ns, TIME_MAX_NS);
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
