// Waking threads, inheritance between threads, and CPU affinity.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/sched/charge.h"
#include "kernel/trace/point.h"

// Adds the time asleep to the history, except for a stopped thread: it did not
// choose to sleep.
static void charge_sleep(struct thread *t)
{
    if (t->priority < PRIORITY_INTERACTIVE || t->state == THREAD_STOPPED)
        return;
    interactivity_slept(&t->history, history_units(rdtsc() - t->since),
                        sched_cycles.history);
}

// Other threads change `state` with the run queue's lock held; the thread
// itself sets it without the lock when it prepares and ends its sleep
// (wait_prepare, wait_finish). The waker changes the condition, passes a full
// barrier, then reads `state`; the sleeper sets `state`, passes a full barrier,
// then reads the condition. So the waker sees the sleeping state or the thread
// sees the changed condition. A late wake-up may hit a later sleep: the thread
// then checks its condition and sleeps again.
static bool wakeable(const struct thread *t, u32 states)
{
    return states & (1u << READ_ONCE(t->state));
}

// Locks the queues of the CPU where `t` is and of `target`, in order.
static void lock_both(struct run_queue *a, struct run_queue *b)
{
    if (a == b) {
        spin_lock(&a->lock);
    } else {
        spin_lock(a < b ? &a->lock : &b->lock);
        spin_lock_nested(a < b ? &b->lock : &a->lock);
    }
}

static void unlock_both(struct run_queue *a, struct run_queue *b)
{
    spin_unlock(&a->lock);
    if (a != b)
        spin_unlock(&b->lock);
}

static bool wake_from(struct thread *t, u32 states)
{
    if (!wakeable(t, states))
        return false;
    u32 flags = irq_save();
    bool woken = false;
    for (;;) {
        struct cpu *last = READ_ONCE(t->cpu);
        struct cpu *target = balance_choose(t, last);
        lock_both(last->rq, target->rq);
        if (READ_ONCE(t->cpu) != last) { // it moved before the lock was held
            unlock_both(last->rq, target->rq);
            continue;
        }
        if (!wakeable(t, states)) {
            woken = false;
        } else if (last->rq->running == t) {
            WRITE_ONCE(t->state, THREAD_RUNNING); // it has not left the CPU yet
            woken = true;
        } else {
            charge_sleep(t);
            charge_relevel(t);
            run_queue_assign(t, target);
            run_queue_make_ready(target->rq, t);
            TRACE(sched_wake, .thread = t->tid, .cpu = target->id,
                  .at = (u32)t->since);
            woken = true;
        }
        unlock_both(last->rq, target->rq);
        break;
    }
    irq_restore(flags);
    if (irq_state_on(flags)) {
        preempt_disable();
        preempt_enable();
    }
    return woken;
}

bool thread_wake(struct thread *t)
{
    return wake_from(t, 1u << THREAD_SLEEPING | 1u << THREAD_WAITING);
}

bool thread_wake_signal(struct thread *t, bool stopped)
{
    // Full barrier, paired with that of wait_prepare: what the caller wrote (a
    // pending signal, the end of a stop) is visible before the state is read.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    u32 states = 1u << THREAD_WAITING;
    if (stopped)
        states |= 1u << THREAD_STOPPED;
    return wake_from(t, states);
}

void thread_start(struct thread *t)
{
    u32 flags = irq_save();
    run_queue_place(t, balance_choose(t, this_cpu()));
    irq_restore(flags);
}

// --- inheritance between threads --------------------------------------------

void sched_inherit(struct thread *child)
{
    const struct thread *from = current;
    child->priority = PRIORITY_INTERACTIVE;
    if (from->task == &kernel_task) {
        child->affinity = cpu_set_below(cpu_count);
        return;
    }
    // While the thread runs, only its own CPU's scheduler changes its history.
    u32 flags = irq_save();
    child->history = from->history;
    u32 ran = history_units(charge_due(from));
    irq_restore(flags);
    cpu_set_copy(&child->affinity, &from->affinity);
    interactivity_ran(&child->history, ran, sched_cycles.history);
    interactivity_decay(&child->history, sched_cycles.inherited);
    child->blocked = from->blocked;
    charge_relevel(child);
    // So that a stream of new threads does not keep back those that wait.
    child->debt = sched_cycles.slice_batch;
}

void sched_inherit_charge(const struct thread *dead, struct thread *inheritor)
{
    assert(dead != inheritor);
    u32 ran = history_units(dead->total.cycles);
    // More than `history` makes no difference.
    if (READ_ONCE(inheritor->inherited_charge) < sched_cycles.history)
        __atomic_fetch_add(&inheritor->inherited_charge,
                           MIN(ran, sched_cycles.inherited), __ATOMIC_RELAXED);
}

int thread_set_affinity(struct thread *t, const struct cpu_set *cpus)
{
    struct cpu_set all = cpu_set_below(cpu_count);
    struct cpu_set allowed = cpu_set_and(cpus, &all);
    if (cpu_set_is_empty(&allowed))
        return -EINVAL;
    u32 flags = irq_save();
    struct cpu *where = run_queue_lock_of(t)->cpu;
    cpu_set_copy(&t->affinity, &allowed);
    bool leave = !cpu_set_has(&allowed, where->id);
    bool queued = leave && !list_empty(&t->run_node);
    if (queued) {
        run_queue_remove(where->rq, t);
        charge_leave(where->rq, t);
    }
    if (leave && where->rq->running == t)
        WRITE_ONCE(where->need_resched, 1);
    spin_unlock(&where->rq->lock);
    if (queued)
        thread_start(t);
    else if (leave && where != this_cpu())
        smp_reschedule(where);
    irq_restore(flags);
    if (leave && t == current)
        schedule();
    return 0;
}
