// Everything is read in a meeting of all CPUs: no account is half changed then,
// and NMIs leave the books alone meanwhile.

#include "kernel/sched/audit.h"

#include "kernel/init/log.h"
#include "kernel/sched/meeting.h"
#include "kernel/sched/runqueue.h"
#include "kernel/sched/task.h"

static u64 closed(u64 cycles, u64 now)
{
    return (s64)cycles < 0 ? cycles + now : cycles;
}

static void add_thread(struct audit *a, const struct thread *t, u64 now)
{
    a->threads_user += closed(t->user.cycles, now);
    a->threads_kernel += closed(t->kernel.cycles, now);
}

struct task_visit {
    struct audit *audit;
    u64 now;
};

static void add_task(struct task *t, void *arg)
{
    spin_assert_held(&tasks_lock);
    struct task_visit *v = arg;
    v->audit->threads_user += t->dead.user + t->children_did.user;
    v->audit->threads_kernel += t->dead.kernel + t->children_did.kernel;
    struct thread *th;
    list_for_each(th, &t->threads, task_node)
        add_thread(v->audit, th, v->now);
}

static void read_all(void *arg)
{
    assert(!irqs_enabled());
    struct audit *a = arg;
    ledger_freeze();
    *a = (struct audit){ .cpus = cpu_count };
    u64 now = rdtsc();
    for (u32 i = 0; i < cpu_count; i++) {
        ledger_sums_at(i, now, &a->cpu[i]);
        add_thread(a, run_queues[i].idle, now);
    }
    struct task_visit v = { a, now };
    spin_lock_irq(&tasks_lock);
    task_for_each_locked(add_task, &v);
    add_task(&kernel_task, &v);
    spin_unlock_irq(&tasks_lock, 0);
    ledger_thaw();
}

void audit_take(struct audit *out)
{
    meeting_call(read_all, out);
}
