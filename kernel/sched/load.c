// kload: every 5 s, samples the number of runnable threads for the load
// averages (lib/load_average.h).
//
// `load_lock` guards `load`, so that a reader gets the values of one update.

#include "kernel/sched/load.h"

#include "kernel/mm/frame.h"
#include "kernel/sched/thread.h"
#include "kernel/time/eventwatch.h"
#include "kernel/time/timecounter.h"

#define PERIOD_NS (LOAD_PERIOD_SECONDS * NSEC_PER_SEC)

static struct spinlock load_lock = SPINLOCK_INIT("load");
static struct load load;

static void update(u32 runnable)
{
    spin_lock(&load_lock);
    for (u32 i = 0; i < LOAD_AVERAGES; i++)
        load.average[i] = load_average(i, load.average[i], runnable);
    load.runnable = runnable;
    load.updates++;
    spin_unlock(&load_lock);
}

static void kload(void *arg)
{
    (void)arg;
    subsystem_enter(IN_MONITORING);
    for (u64 next = clock_now_ns();;) {
        next += PERIOD_NS;
        thread_sleep_until(next, WAIT_UNINTERRUPTIBLE);
        // Without kload itself. MIN: kload is not counted if it migrates
        // during the count, from an uncounted CPU to a counted one.
        u32 runnable = sched_runnable();
        update(runnable - MIN(runnable, 1u));
        timecounter_watch(); // here, because the CPU is awake anyway
        event_watch_check();
    }
}

void load_start(void)
{
    if (kthread_create("kload", kload, NULL, NULL))
        boot_lacks_memory("kload");
}

void load_read(struct load *out)
{
    spin_lock(&load_lock);
    *out = load;
    spin_unlock(&load_lock);
}
