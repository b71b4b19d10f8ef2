// All accounts are read in a rendezvous of all CPUs: no account is half updated
// then, and an NMI during it changes no account.

#include "kernel/monitor/audit.h"

#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/stop_machine.h"
#include "kernel/task/task.h"

static u64 closed(u64 cycles, u64 now)
{
    return (s64)cycles < 0 ? cycles + now : cycles;
}

struct task_visit {
    struct audit *audit;
    u64 now;
    u64 user, total; // of the living threads
};

static void add_thread(struct task_visit *v, const struct thread *t)
{
    v->user += closed(t->user, v->now);
    v->total += closed(t->total.cycles, v->now);
}

static void add_task(struct task *t, void *arg)
{
    spin_assert_held(&tasks_lock);
    struct task_visit *v = arg;
    v->audit->threads_user += t->dead.user + t->children_usage.user;
    v->audit->threads_kernel += t->dead.kernel + t->children_usage.kernel;
    struct thread *th;
    list_for_each(th, &t->threads, task_node)
        add_thread(v, th);
}

static void read_all(void *arg)
{
    assert(!irqs_enabled());
    struct audit *a = arg;
    ledger_freeze();
    a->cpus = cpu_count;
    a->threads_user = a->threads_kernel = 0;
    u64 now = rdtsc();
    struct task_visit v = { a, now, 0, 0 };
    for (u32 i = 0; i < cpu_count; i++) {
        ledger_sums_at(i, now, &a->cpu[i]);
        add_thread(&v, sched_idle_thread(i));
    }
    spin_lock_irq(&tasks_lock);
    task_for_each_locked(add_task, &v);
    add_task(&kernel_task, &v);
    spin_unlock_irq(&tasks_lock, 0);
    a->threads_user += v.user;
    a->threads_kernel += v.total - v.user;
    ledger_thaw();
}

struct audit *audit_alloc(void)
{
    struct audit *a;
    return kmalloc(sizeof(*a) + cpu_count * sizeof(a->cpu[0]));
}

void audit_take(struct audit *out)
{
    stop_machine(read_all, out);
}
