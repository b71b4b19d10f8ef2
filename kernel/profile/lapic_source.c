// Sample source "lapic": each CPU's own one-shot timer, set again and again, on
// a fixed grid or at random distances. Maskable: code that runs with interrupts
// off is not seen.

#include "arch/cpu.h"
#include "kernel/fs/devfs.h"
#include "kernel/profile/sample.h"
#include "kernel/time/callout.h"

static const struct sample_source lapic_source;

static struct {
    struct callout timer;
    u32 distance; // ns between the tick that is awaited and the one before
    u32 seed;
} per_cpu[CPU_MAX];

static u32 period_ns;
static bool random_distance;
static bool running; // read by each handler before it sets itself again

static u32 next_distance(u32 cpu)
{
    if (!random_distance)
        return period_ns;
    return sample_random_distance(&per_cpu[cpu].seed, period_ns);
}

static void tick(struct callout *timer)
{
    u64 now = clock_now_ns();
    u32 cpu = this_cpu()->id;
    // Late by whole periods (interrupts were off, or the host did not run this
    // CPU): one sample stands for all of them, and the grid is kept.
    u64 late = now - callout_deadline(timer);
    u32 more = late < period_ns ? 0 : (u32)(late / period_ns);
    if (!READ_ONCE(running))
        return;
    struct hit h;
    hit_set(&h, this_cpu()->irq_frame, 1 + more,
            per_cpu[cpu].distance + (u64)more * period_ns, rdtsc());
    sample_take(&lapic_source, &h);
    u32 distance = next_distance(cpu);
    per_cpu[cpu].distance = distance;
    callout_set(timer,
                callout_deadline(timer) + (u64)more * period_ns + distance);
}

static void start_here(void *arg)
{
    (void)arg;
    u32 cpu = this_cpu()->id;
    struct callout *timer = &per_cpu[cpu].timer;
    per_cpu[cpu].distance = next_distance(cpu);
    callout_init(timer, tick, CALLOUT_INTERRUPT);
    callout_set(timer, clock_now_ns() + per_cpu[cpu].distance);
}

static int lapic_start(const struct sample_source *s UNUSED,
                       struct sample_rate *rate)
{
    period_ns = (u32)NSEC_PER_SEC / rate->hz;
    random_distance = rate->random;
    for (u32 i = 0; i < cpu_count; i++) {
        random_bytes(&per_cpu[i].seed, sizeof(per_cpu[i].seed));
        per_cpu[i].seed |= 1;
    }
    WRITE_ONCE(running, true);
    preempt_disable();
    start_here(NULL);
    preempt_enable();
    smp_call_others(start_here, NULL);
    rate->period = period_ns;
    rate->hz = ((u32)NSEC_PER_SEC + period_ns / 2) / period_ns;
    return 0;
}

static void lapic_stop(const struct sample_source *s UNUSED)
{
    WRITE_ONCE(running, false);
    for (u32 i = 0; i < cpu_count; i++)
        callout_drain(&per_cpu[i].timer);
}

static const char *lapic_why_not(const struct sample_source *s UNUSED)
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
