// kload: looks every 5 s how many threads run or could (lib/load_average.h).
//
// `load_lock` guards `load`, so that who reads gets the figures of one update.

#include "kernel/sched/load.h"

#include "kernel/mm/frame.h"
#include "kernel/sched/thread.h"
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
        // Without kload itself, which may go from one CPU that has not been
        // looked at to one that has.
        u32 runnable = sched_runnable();
        update(runnable - MIN(runnable, 1u));
        timecounter_watch(); // now that the machine is awake
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
