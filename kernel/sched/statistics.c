// The scheduler's figures: see statistics.h. Each lock is held for a few
// instructions.

#include "kernel/sched/statistics.h"

#include "kernel/sched/runqueue.h"

u64 sched_cpu_switches(u32 cpu)
{
    struct run_queue *rq = &run_queues[cpu];
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

// Locks the queue that guards the thread's figures: that of its CPU, which may
// change until the lock is held.
static struct run_queue *lock_queue_of(const struct thread *t)
{
    for (;;) {
        struct cpu *cpu = READ_ONCE(t->cpu);
        spin_lock(&cpu->rq->lock);
        if (t->cpu == cpu)
            return cpu->rq;
        spin_unlock(&cpu->rq->lock);
    }
}

void thread_statistics(const struct thread *t, struct thread_statistics *out)
{
    u32 flags = irq_save();
    struct run_queue *rq = lock_queue_of(t);
    *out = (struct thread_statistics){
        // The thread itself marks its state and reason before it sleeps,
        // without the lock (wait_prepare).
        .state = READ_ONCE(t->state),
        .cpu = t->cpu->id,
        .priority = t->priority,
        .affinity = t->affinity,
        .voluntary = t->switches_voluntary,
        .forced = t->switches_forced,
        .wait_on = READ_ONCE(t->wait_on),
    };
    spin_unlock(&rq->lock);
    irq_restore(flags);
    if (out->state != THREAD_SLEEPING && out->state != THREAD_WAITING)
        out->wait_on = NULL;
}
