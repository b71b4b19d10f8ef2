// Sample source "lapic": each CPU's own one-shot timer, set again and again on
// a fixed grid. Maskable: code that runs with interrupts off is not seen.

#include "arch/cpu.h"
#include "kernel/errno.h"
#include "kernel/profile/sample.h"
#include "kernel/time/timeout.h"

static struct {
    struct timeout timeout;
} per_cpu[CPU_MAX];

static u64 period_ns;
static bool running; // read by each handler before it sets itself again

static void tick(struct timeout *t)
{
    u64 now = clock_now_ns();
    // Late by whole periods (interrupts were off, or the host did not run this
    // CPU): one sample stands for all of them, and the grid is kept.
    u64 late = now - t->deadline;
    u32 weight = late < period_ns ? 1 : 1 + (u32)(late / period_ns);
    if (!READ_ONCE(running))
        return;
    sample_take(this_cpu()->irq_frame, weight);
    timeout_set(t, t->deadline + weight * period_ns);
}

static void start_here(void *arg)
{
    (void)arg;
    struct timeout *t = &per_cpu[this_cpu()->id].timeout;
    timeout_init(t, tick);
    timeout_set(t, clock_now_ns() + period_ns);
}

static int lapic_start(u32 hz)
{
    period_ns = NSEC_PER_SEC / hz;
    WRITE_ONCE(running, true);
    preempt_disable();
    start_here(NULL);
    preempt_enable();
    smp_call_others(start_here, NULL);
    return (int)((NSEC_PER_SEC + period_ns / 2) / period_ns);
}

static void lapic_stop(void)
{
    WRITE_ONCE(running, false);
    for (u32 i = 0; i < cpu_count; i++)
        timeout_cancel(&per_cpu[i].timeout);
}

static const char *lapic_why_not(void)
{
    return NULL;
}

static const struct sample_source lapic_source = {
    .name = "lapic",
    .rank = 100,
    .min_hz = 1,
    .max_hz = 20000,
    .why_not = lapic_why_not,
    .start = lapic_start,
    .stop = lapic_stop,
};
SAMPLE_SOURCE(lapic_source);
