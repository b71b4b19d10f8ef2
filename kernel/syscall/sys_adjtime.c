// System calls that adjust the clock: adjtimex, clock_adjtime.

#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/task/task.h"
#include "kernel/time/adjust.h"
#include "kernel/time/time_page.h"
#include "lib/string.h"

struct timex32 {
    u32 modes;
    s32 offset, freq, maxerror, esterror, status, constant, precision,
        tolerance, sec, usec, tick, pps[2], shift, pps_more[5], tai, pad[11];
};

_Static_assert(sizeof(struct timex32) == 128, "adjtimex");
_Static_assert(sizeof(struct timex) == 208, "clock_adjtime64");

// Reading needs no privilege.
static s32 adjust(struct timex *t)
{
    bool only_reads = !t->modes || t->modes == (ADJUST_SINGLESHOT |
                                                ADJUST_SS_READ | ADJUST_OFFSET);
    return only_reads || may_set_time() ? clock_adjust(t) : -EPERM;
}

static s32 adjust32(u32 addr)
{
    struct timex32 n;
    if (copy_from_user(&n, addr, sizeof(n)))
        return -EFAULT;
    struct timex t = { .modes = n.modes,
                       .offset = n.offset,
                       .freq = n.freq,
                       .maxerror = n.maxerror,
                       .esterror = n.esterror,
                       .status = n.status,
                       .constant = n.constant,
                       .sec = n.sec,
                       .usec = n.usec,
                       .tick = n.tick };
    s32 result = adjust(&t);
    if (result < 0)
        return result;
    n = (struct timex32){ .modes = t.modes,
                          .offset = (s32)t.offset,
                          .freq = (s32)t.freq,
                          .maxerror = (s32)t.maxerror,
                          .esterror = (s32)t.esterror,
                          .status = t.status,
                          .constant = (s32)t.constant,
                          .precision = (s32)t.precision,
                          .tolerance = (s32)t.tolerance,
                          .sec = (s32)t.sec,
                          .usec = (s32)t.usec,
                          .tick = (s32)t.tick,
                          .tai = t.tai };
    return copy_to_user(addr, &n, sizeof(n)) ? -EFAULT : result;
}

s32 sys_adjtimex(u32 state)
{
    return adjust32(state);
}

s32 sys_clock_adjtime(u32 clock, u32 state)
{
    return clock == CLOCK_REALTIME ? adjust32(state) : -EOPNOTSUPP;
}

s32 sys_clock_adjtime64(u32 clock, u32 state)
{
    struct timex t;
    if (clock != CLOCK_REALTIME)
        return -EOPNOTSUPP;
    if (copy_from_user(&t, state, sizeof(t)))
        return -EFAULT;
    s32 result = adjust(&t);
    if (result >= 0 && copy_to_user(state, &t, sizeof(t)))
        return -EFAULT;
    return result;
}
