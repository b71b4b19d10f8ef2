// All other CPUs come into an interrupt handler and wait there; the last one to
// come reads. Where interrupts are off nobody is then, so no lock that disables
// them is held and no account is half changed, except on the caller's CPU: it
// waits for the call to end with interrupts on, and one may come. Its ledger
// tells; then the read is done again.

#include "kernel/sched/audit.h"

#include "kernel/sched/runqueue.h"
#include "kernel/sched/task.h"

struct call {
    struct audit *out;
    const struct cpu *caller;
    u32 others, arrived, done;
};

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
    struct task_visit *v = arg;
    v->audit->threads_user += t->dead_user + t->child_user;
    v->audit->threads_kernel += t->dead_kernel + t->child_kernel;
    struct thread *th;
    list_for_each(th, &t->threads, task_node)
        add_thread(v->audit, th, v->now);
}

static void read_all(struct audit *a, const struct cpu *caller)
{
    const struct ledger *l = caller->ledger;
    u32 seq;
    do {
        while ((seq = READ_ONCE(l->seq)) & 1)
            cpu_relax();
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
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (READ_ONCE(l->seq) != seq);
}

static void meet(void *arg)
{
    struct call *c = arg;
    if (__atomic_add_fetch(&c->arrived, 1, __ATOMIC_ACQ_REL) == c->others) {
        read_all(c->out, c->caller);
        __atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(&c->done, __ATOMIC_ACQUIRE))
        cpu_relax();
}

void audit_take(struct audit *out)
{
    preempt_disable();
    struct call c = { out, this_cpu(), cpu_count - 1, 0, 0 };
    if (c.others) {
        smp_call_others(meet, &c);
    } else {
        u32 flags = irq_save();
        read_all(out, c.caller);
        irq_restore(flags);
    }
    preempt_enable();
}
