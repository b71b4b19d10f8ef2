// Resource usage of threads and tasks. Each lock is held for a few instructions
// only.

#include "kernel/task/usage.h"

#include "kernel/base/log.h"
#include "kernel/sched/statistics.h"
#include "kernel/task/task.h"

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
