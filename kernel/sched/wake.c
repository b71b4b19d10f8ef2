// Waking threads, and where they may run.

#include "kernel/errno.h"
#include "kernel/sched/runqueue.h"
#include "kernel/sched/task.h"

// Half of the time asleep comes back as slice; a full one makes interactive.
static void earn_slice(struct thread *t)
{
    if (t->priority < PRIORITY_INTERACTIVE)
        return;
    u64 full = slice_length(t);
    u64 slept = clock_now_ns() - t->wait_began;
    t->slice_left = MIN(t->slice_left + slept / 2, full);
    if (t->slice_left == full)
        t->priority = PRIORITY_INTERACTIVE;
}

// Others change `state` under the lock of its run queue, the thread itself
// announces its sleep and ends it without (wait_prepare, wait_finish). Whoever
// wakes it has changed what it waits for and passed a full barrier: either he
// sees the sleep announced or the thread sees the change. A thread that is
// woken from a later sleep than was meant looks at its condition and sleeps
// again.
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
        if (READ_ONCE(t->cpu) != last) { // it moved meanwhile
            unlock_both(last->rq, target->rq);
            continue;
        }
        if (!wakeable(t, states)) {
            woken = false;
        } else if (last->rq->running == t) {
            WRITE_ONCE(t->state, THREAD_RUNNING); // it had not left yet
            woken = true;
        } else {
            earn_slice(t);
            WRITE_ONCE(t->cpu, target);
            run_queue_make_ready(target->rq, t);
            woken = true;
        }
        unlock_both(last->rq, target->rq);
        break;
    }
    irq_restore(flags);
    if (flags & EFLAGS_IF) {
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
    // The full barrier of wait_prepare's other side: what the caller wrote (a
    // pending signal, an end of a stop) is visible before the state is read.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    u32 states = 1u << THREAD_WAITING;
    if (stopped)
        states |= 1u << THREAD_STOPPED;
    return wake_from(t, states);
}

void thread_start(struct thread *t)
{
    u32 flags = irq_save();
    t->wait_began = clock_now_ns();
    run_queue_place(t, balance_choose(t, this_cpu()));
    irq_restore(flags);
}

void thread_set_nice(struct thread *t, int nice)
{
    t->task->nice = nice; // the next slice has the new length
}

int thread_set_affinity(struct thread *t, u32 mask)
{
    mask &= (1u << (cpu_count - 1) << 1) - 1;
    if (!mask)
        return -EINVAL;
    u32 flags = irq_save();
    struct cpu *where;
    for (;;) {
        where = READ_ONCE(t->cpu);
        spin_lock(&where->rq->lock);
        if (READ_ONCE(t->cpu) == where)
            break;
        spin_unlock(&where->rq->lock);
    }
    t->affinity = mask;
    bool leave = !(mask & (1u << where->id));
    bool queued = leave && !list_empty(&t->run_node);
    if (queued)
        run_queue_remove(where->rq, t);
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
