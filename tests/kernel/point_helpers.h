// Trace points whose branch is still on (kernel/trace/point.c), and the
// kernel's code without them.
#pragma once

#include "kernel/trace/point.h"
#include "tests/kernel/thread_helpers.h"

extern char text_start[], text_end[];

static inline bool point_lingers(void)
{
    for (u32 i = 0; i < TRACE_POINTS; i++) {
        const struct trace_point *p = &trace_points[i];
        if (READ_ONCE(p->branch.users) && !READ_ONCE(p->listeners))
            return true;
    }
    return false;
}

// Waits for those that earlier tests have used.
static inline void points_settle(void)
{
    while (point_lingers())
        sleep_ms(10);
}

// Of the kernel's code, while no trace records.
static inline u32 text_checksum(void)
{
    u32 sum = 0;
    points_settle();
    for (const char *p = text_start; p < text_end; p++)
        sum = sum * 31 + (u8)*p;
    return sum;
}
