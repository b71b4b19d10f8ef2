// Statistics of run queues and threads. Each lock is held for a few
// instructions only.

#include "kernel/sched/statistics.h"

#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/sched/runqueue.h"

u64 sched_cpu_switches(u32 cpu)
{
    assert_checked(cpu < cpu_count);
    struct run_queue *rq = run_queues[cpu];
    u32 flags = spin_lock_irq(&rq->lock);
    u64 n = rq->switches;
    spin_unlock_irq(&rq->lock, flags);
    return n;
}

u64 sched_switches(void)
{
    u64 sum = 0;
    for (u32 i = 0; i < cpu_count; i++)
        sum += sched_cpu_switches(i);
    return sum;
}

void thread_statistics(const struct thread *t, struct thread_statistics *out)
{
    u32 flags = irq_save();
    struct run_queue *rq = run_queue_lock_of(t);
    *out = (struct thread_statistics){
        // The thread itself sets its state and wait_on before it sleeps,
        // without the lock (wait_prepare).
        .state = READ_ONCE(t->state),
        .cpu = t->cpu->id,
        .priority = t->priority,
        .affinity = t->affinity,
        .voluntary = t->switches_voluntary,
        .forced = t->switches_forced,
        .migrations = READ_ONCE(t->migrations),
        .faults = READ_ONCE(t->faults),
        .wait_on = READ_ONCE(t->wait_on),
    };
    spin_unlock(&rq->lock);
    irq_restore(flags);
    if (out->state != THREAD_SLEEPING && out->state != THREAD_WAITING)
        out->wait_on = NULL;
}

u64 thread_ready_ns(struct thread *t)
{
    u32 flags = irq_save();
    struct run_queue *rq = run_queue_lock_of(t);
    u64 waited = t->waited;
    if (READ_ONCE(t->state) == THREAD_READY)
        waited += rdtsc() - t->since;
    spin_unlock(&rq->lock);
    irq_restore(flags);
    // A short wait may be negative if the CPUs' TSCs differ.
    return (s64)waited < 0 ? 0 : clock_tsc_to_ns(waited);
}

void sched_visit_running(u32 cpu, void (*fn)(struct thread *, void *),
                         void *arg)
{
    assert_checked(cpu < cpu_count && !irqs_enabled());
    struct run_queue *rq = run_queues[cpu];
    spin_lock(&rq->lock);
    fn(rq->running, arg);
    spin_unlock(&rq->lock);
}
