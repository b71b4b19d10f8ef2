// Structures of the Linux/i386 interface that several families of calls use.
#pragma once

#include "arch/mmu.h"
#include "kernel/time/time_page.h" // the clocks' numbers
#include "lib/math64.h"
#include "lib/types.h"

struct timespec32 {
    s32 sec, nsec;
};
struct timespec64 {
    s64 sec;
    s32 nsec, pad;
};
struct timeval32 {
    s32 sec, usec;
};
_Static_assert(sizeof(struct timespec32) == 8 &&
                   sizeof(struct timespec64) == 16 &&
                   sizeof(struct timeval32) == 8,
               "the ABI's times");

// A call that exists with seconds of 32 bits, and under another name with
// seconds of 64: both return `call`, an expression with `wide`.
#define TIME_TWINS(name, name64, parameters, call) \
    s32 sys_##name parameters                      \
    {                                              \
        const bool wide = false;                   \
        return call;                               \
    }                                              \
    s32 sys_##name64 parameters                    \
    {                                              \
        const bool wide = true;                    \
        return call;                               \
    }

// Reads a relative or absolute time in nanoseconds; `wide`: 64-bit seconds.
// Values that do not fit are clamped to the maximum. -EFAULT, -EINVAL.
int time_from_user(u32 addr, bool wide, u64 *ns);
// Inline for clock_gettime: with a constant `wide`, half of it is optimised
// away. -EFAULT.
static inline int time_to_user(u32 addr, bool wide, u64 ns)
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
// Optional timeout argument of futex, sigtimedwait, poll...: the deadline in
// clock_now_ns units; WAIT_FOREVER when addr is 0.
int deadline_from_user(u32 addr, bool wide, u64 *deadline);
// The deadline `ns` from now; clamped to the maximum.
u64 deadline_after(u64 ns);
// True if the caller may set and adjust clocks.
bool may_set_time(void);
