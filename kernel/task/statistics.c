// Statistics of the scheduler, threads and tasks: see statistics.h. Each lock
// is held for a few instructions only.

#include "kernel/task/statistics.h"

#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/sched/runqueue.h"
#include "kernel/task/task.h"

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

void usage_add(struct resource_usage *to, const struct resource_usage *f)
{
    to->user += f->user;
    to->kernel += f->kernel;
    to->voluntary += f->voluntary;
    to->forced += f->forced;
    to->migrations += f->migrations;
    to->faults += f->faults;
    to->peak_pages = MAX(to->peak_pages, f->peak_pages);
}

void thread_usage(const struct thread *t, struct resource_usage *out)
{
    struct thread_statistics s;
    thread_statistics(t, &s);
    *out = (struct resource_usage){
        .voluntary = s.voluntary,
        .forced = s.forced,
        .migrations = s.migrations,
        .faults = s.faults,
    };
    thread_times(t, &out->user, &out->kernel);
}

void task_usage_keep_peak(struct task *t)
{
    spin_assert_held(&tasks_lock);
    if (t->aspace)
        t->dead.peak_pages =
            MAX(t->dead.peak_pages, aspace_peak_resident(t->aspace));
}

void task_usage_locked(struct task *t, struct resource_usage *out)
{
    spin_assert_held(&tasks_lock);
    if (!t->exiting)
        task_usage_keep_peak(t);
    *out = t->dead;
    struct thread *thread;
    list_for_each(thread, &t->threads, task_node) {
        struct resource_usage f;
        thread_usage(thread, &f);
        usage_add(out, &f);
    }
}

void task_usage_family(struct task *t, struct resource_usage *out)
{
    spin_assert_held(&tasks_lock);
    task_usage_locked(t, out);
    usage_add(out, &t->children_usage);
}

void task_usage_keep(struct task *task, const struct thread *dead)
{
    spin_assert_held(&tasks_lock);
    const struct resource_usage did = {
        .user = dead->user,
        .kernel = thread_kernel_cycles(dead),
        .voluntary = dead->switches_voluntary,
        .forced = dead->switches_forced,
        .migrations = dead->migrations,
        .faults = dead->faults,
    };
    usage_add(&task->dead, &did);
}
