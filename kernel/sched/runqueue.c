// Run queues: adding and removing threads, and the timing of slices.
//
// A slice is only timed when somebody else waits: an idle or lonely CPU takes
// no tick.

#include "kernel/sched/runqueue.h"

#include "kernel/sched/task.h"

#define SLICE_NS (20 * NSEC_PER_MSEC)

struct run_queue run_queues[CPU_MAX];

// nice 0: 20 ms; every step is a factor of 1.12, so 19 is 2 ms, -20 is 200 ms.
u64 slice_length(const struct thread *t)
{
    u64 slice = SLICE_NS;
    int nice = t->task->nice;
    for (; nice > 0; nice--)
        slice = slice * 100 / 112;
    for (; nice < 0; nice++)
        slice = slice * 112 / 100;
    return slice;
}

void run_queue_add(struct run_queue *rq, struct thread *t, bool front)
{
    struct list *level = &rq->levels[t->priority];
    if (front)
        list_push_front(level, &t->run_node);
    else
        list_push_back(level, &t->run_node);
    rq->bitmap |= 1u << t->priority;
    ADD_ONCE(rq->count, 1);
    WRITE_ONCE(t->state, THREAD_READY);
}

void run_queue_remove(struct run_queue *rq, struct thread *t)
{
    list_remove(&t->run_node);
    if (list_empty(&rq->levels[t->priority]))
        rq->bitmap &= ~(1u << t->priority);
    ADD_ONCE(rq->count, -1);
}

// Somebody waits behind the running thread: its slice must end in time.
void run_queue_arm_slice(struct run_queue *rq)
{
    if (rq->slice_armed)
        return;
    rq->slice_armed = true;
    timeout_set(&rq->slice, rq->slice_end);
}

static void slice_over(struct timeout *timeout)
{
    struct run_queue *rq = container_of(timeout, struct run_queue, slice);
    rq->slice_armed = false;
    // Without the lock. A thread that another CPU queues just now brings an
    // interrupt of its own; one that is stolen leaves a switch to nobody.
    if (!READ_ONCE(rq->count) || rq->running == rq->idle)
        return;
    if (clock_now_ns() < rq->slice_end)
        run_queue_arm_slice(rq);
    else
        WRITE_ONCE(this_cpu()->need_resched, 1);
}

// `rq` is locked, t is on no list. Kicks the CPU if it should switch.
void run_queue_make_ready(struct run_queue *rq, struct thread *t)
{
    run_queue_add(rq, t, false);
    struct thread *running = rq->running;
    bool preempt = running == rq->idle || t->priority < running->priority;
    if (rq->cpu == this_cpu()) {
        if (preempt)
            WRITE_ONCE(rq->cpu->need_resched, 1);
        else
            run_queue_arm_slice(rq);
    } else {
        if (preempt)
            WRITE_ONCE(rq->cpu->need_resched, 1);
        // Also when it does not preempt: the CPU may have no slice armed.
        if (preempt || rq->count == 1)
            smp_reschedule(rq->cpu);
    }
}

// Queues a ready thread that is on no list and uses no stack. Interrupts off.
void run_queue_place(struct thread *t, struct cpu *target)
{
    spin_lock(&target->rq->lock);
    WRITE_ONCE(t->cpu, target);
    run_queue_make_ready(target->rq, t);
    spin_unlock(&target->rq->lock);
}

void run_queue_init(struct run_queue *rq, struct cpu *cpu)
{
    spin_init(&rq->lock, "run queue");
    for (u32 i = 0; i < PRIORITY_LEVELS; i++)
        list_init(&rq->levels[i]);
    timeout_init(&rq->slice, slice_over);
    rq->cpu = cpu;
}
