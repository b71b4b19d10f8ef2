// Every 5 s:  load = load * C + runnable * (1 - C),  C = e^(-5/T), in 16.16
// fixed point, for T of 1, 5 and 15 minutes (the first seed, 4.4.2, with the
// exact exponential).

#include "kernel/sched/load.h"

#include "kernel/init/log.h"
#include "kernel/sched/thread.h"

#define PERIOD_NS (5 * NSEC_PER_SEC)
#define ONE 65536u

// round(65536 * e^(-5/60)), e^(-5/300), e^(-5/900)
static const u32 decay[3] = { 60296, 64453, 65173 };

static u32 load[3];

static void update(u32 runnable)
{
    for (u32 i = 0; i < 3; i++) {
        u64 sum =
            (u64)load[i] * decay[i] + (u64)runnable * ONE * (ONE - decay[i]);
        WRITE_ONCE(load[i], (u32)((sum + ONE / 2) / ONE));
    }
}

static void kload(void *arg)
{
    (void)arg;
    for (u64 next = clock_now_ns();;) {
        next += PERIOD_NS;
        thread_sleep_until(next, WAIT_UNINTERRUPTIBLE);
        update(sched_runnable() - 1); // without kload itself
    }
}

void load_start(void)
{
    if (kthread_create("kload", kload, NULL, NULL))
        panic("no memory for kload");
}

void sched_load(u32 out[3])
{
    for (u32 i = 0; i < 3; i++)
        out[i] = READ_ONCE(load[i]);
}
