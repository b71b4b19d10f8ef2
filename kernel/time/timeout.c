// Timeouts: a pairing heap and a lock a CPU.
//
// The CPU that sets a timeout queues it on itself and is the only one that
// takes it out to run it; others may remove it (cancel). `running` tells a
// canceller that the handler is at work.

#include "kernel/time/timeout.h"

#include "kernel/init/log.h"
#include "kernel/sync/spinlock.h"

struct timeouts {
    struct spinlock lock;
    struct heap heap;
    struct timeout *running;
};

static struct timeouts timeouts_of[CPU_MAX];

void timeouts_init_cpu(struct cpu *cpu)
{
    struct timeouts *q = &timeouts_of[cpu->id];
    spin_init(&q->lock, "timeouts");
    cpu->timeouts = q;
}

void timeout_init(struct timeout *t, void (*fn)(struct timeout *t))
{
    *t = (struct timeout){ .fn = fn };
}

static struct timeout *first(struct timeouts *q)
{
    struct heap_node *n = heap_min(&q->heap);
    return n ? container_of(n, struct timeout, node) : NULL;
}

static void arm_first(struct timeouts *q)
{
    struct timeout *t = first(q);
    if (t)
        clock_arm(t->deadline);
    else
        clock_disarm();
}

// Removes `t` from whichever queue it is on. Interrupts are off.
static bool take_out(struct timeout *t)
{
    for (;;) {
        struct cpu *cpu = READ_ONCE(t->cpu);
        if (!cpu)
            return false;
        struct timeouts *q = cpu->timeouts;
        spin_lock(&q->lock);
        if (t->cpu == cpu) {
            heap_remove(&q->heap, &t->node);
            WRITE_ONCE(t->cpu, NULL);
            spin_unlock(&q->lock);
            return true;
        }
        spin_unlock(&q->lock); // it fired while we came
    }
}

void timeout_set(struct timeout *t, u64 deadline)
{
    u32 flags = irq_save();
    take_out(t);
    struct cpu *cpu = this_cpu();
    struct timeouts *q = cpu->timeouts;
    spin_lock(&q->lock);
    t->deadline = deadline;
    WRITE_ONCE(t->cpu, cpu);
    heap_insert(&q->heap, &t->node, deadline);
    if (first(q) == t && !q->running)
        clock_arm(deadline);
    spin_unlock(&q->lock);
    irq_restore(flags);
}

bool timeout_cancel(struct timeout *t)
{
    bool was_pending = false;
    do {
        u32 flags = irq_save();
        was_pending |= take_out(t);
        irq_restore(flags);
        for (u32 i = 0; i < cpu_count; i++) {
            while (READ_ONCE(timeouts_of[i].running) == t)
                cpu_relax();
        }
    } while (READ_ONCE(t->cpu)); // its handler had set it again
    return was_pending;
}

void timeouts_interrupt(void)
{
    struct timeouts *q = this_cpu()->timeouts;
    spin_lock(&q->lock);
    for (;;) {
        struct timeout *t = first(q);
        if (!t || t->deadline > clock_now_ns())
            break;
        heap_remove(&q->heap, &t->node);
        // Running before unqueued: a canceller that finds it unqueued sees it
        // running until its handler is through.
        WRITE_ONCE(q->running, t);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        WRITE_ONCE(t->cpu, NULL);
        spin_unlock(&q->lock);
        t->fn(t);
        spin_lock(&q->lock);
        WRITE_ONCE(q->running, NULL);
    }
    arm_first(q);
    spin_unlock(&q->lock);
}
