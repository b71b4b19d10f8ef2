// The scheduler: who runs next on this CPU, and the switch to it.
//
// Policy: levels are strict. Within a level, round robin with slices whose
// length follows `nice`. A thread that uses its slice up goes to the batch
// level; one that sleeps earns slice back (half of its sleep), and is
// interactive again when its slice is full. So that batch threads never starve,
// one of them runs at least every STARVATION_NS.

#include "kernel/init/log.h"
#include "kernel/mm/aspace.h"
#include "kernel/sched/runqueue.h"
#include "kernel/sched/task.h"
#include "lib/format.h"

#define STARVATION_NS (30 * NSEC_PER_MSEC)

static struct run_queue *this_rq(void)
{
    return this_cpu()->rq;
}

// Books the time the running thread had.
static void charge(struct run_queue *rq, struct thread *t, u64 now)
{
    u64 ran = now - rq->started;
    rq->started = now;
    if (t->slice_left > ran) {
        t->slice_left -= ran;
        return;
    }
    t->slice_left = slice_length(t);
    if (t->priority >= PRIORITY_INTERACTIVE)
        t->priority = PRIORITY_BATCH;
}

static struct thread *pick(struct run_queue *rq, u64 now)
{
    if (!rq->count)
        return NULL;
    u32 level = (u32)__builtin_ctz(rq->bitmap);
    bool batch = rq->bitmap & (1u << PRIORITY_BATCH);
    if (!batch)
        rq->last_batch = now;
    else if (level < PRIORITY_BATCH && now - rq->last_batch > STARVATION_NS)
        level = PRIORITY_BATCH;
    if (level == PRIORITY_BATCH)
        rq->last_batch = now;
    struct thread *t = list_first(&rq->levels[level], struct thread, run_node);
    run_queue_remove(rq, t);
    return t;
}

// Puts the thread that leaves the CPU where its state says.
static void put_previous(struct run_queue *rq, struct thread *prev,
                         bool preempted, u64 now)
{
    bool asleep = prev->state == THREAD_SLEEPING ||
                  prev->state == THREAD_WAITING ||
                  prev->state == THREAD_STOPPED;
    if (prev->state == THREAD_DEAD || (asleep && !preempted)) {
        prev->switches_voluntary++;
        prev->wait_began = now;
        return;
    }
    // Preempted between wait_prepare and the sleep it goes back to look at its
    // condition once more: a spurious wake-up, which every waiter allows.
    bool expired = prev->slice_left == slice_length(prev);
    if (preempted)
        prev->switches_forced++;
    else
        prev->switches_voluntary++;
    struct cpu *home = rq->cpu;
    if (!(prev->affinity & (1u << home->id)))
        home = balance_choose(prev, home);
    else if (expired)
        home = balance_expired(rq);
    if (home == rq->cpu) {
        run_queue_add(rq, prev, preempted && !expired);
    } else { // once its stack is free: sched_switch_finished
        WRITE_ONCE(prev->state, THREAD_READY);
        rq->moving_to = home;
    }
}

void sched_switch_finished(struct thread *prev)
{
    struct run_queue *rq = this_rq();
    struct cpu *moving_to = rq->moving_to;
    rq->moving_to = NULL;
    WRITE_ONCE(prev->on_cpu, false);
    bool dead = prev->state == THREAD_DEAD;
    spin_unlock_irq(&rq->lock, 0);
    if (moving_to)
        run_queue_place(prev, moving_to);
    if (dead)
        thread_ended(prev);
}

// Interrupts off. Returns with them off, perhaps on another CPU.
static void switch_away(bool preempted)
{
    struct run_queue *rq = this_rq();
    spin_lock_irq(&rq->lock);
    struct thread *prev = rq->running;
    u64 now = clock_now_ns();
    WRITE_ONCE(this_cpu()->need_resched, 0);

    if (prev != rq->idle) {
        if (prev->state == THREAD_RUNNING && !rq->count &&
            prev->affinity & (1u << rq->cpu->id)) {
            charge(rq, prev, now); // nobody else: go on
            rq->slice_end = now + prev->slice_left;
            spin_unlock_irq(&rq->lock, 0);
            return;
        }
        charge(rq, prev, now);
        put_previous(rq, prev, preempted, now);
    }
    struct thread *next = pick(rq, now);
    if (!next)
        next = balance_steal(rq);
    if (!next)
        next = rq->idle;

    WRITE_ONCE(next->state, THREAD_RUNNING);
    WRITE_ONCE(next->cpu, rq->cpu);
    WRITE_ONCE(rq->running, next);
    rq->started = now;
    rq->slice_end = now + next->slice_left;
    if (rq->count && next != rq->idle)
        run_queue_arm_slice(rq);
    if (next == prev) {
        assert(!rq->moving_to);
        spin_unlock_irq(&rq->lock, 0);
        return;
    }
    rq->switches++;
    WRITE_ONCE(next->on_cpu, true);
    ledger_switch(&next->kernel);
    if (next->task->aspace != rq->cpu->aspace && next->task->aspace)
        aspace_switch(next->task->aspace);
    rq->cpu->thread = next;
    prev = arch_switch(prev, next);
    sched_switch_finished(prev);
}

void schedule(void)
{
    u32 flags = irq_save();
    assert(!this_cpu()->irq_depth && !this_cpu()->preempt_count);
    switch_away(false);
    irq_restore(flags);
}

void sched_yield(void)
{
    u32 flags = irq_save();
    switch_away(false);
    irq_restore(flags);
}

void thread_exit(void)
{
    lockdep_none_held("a thread ends");
    irq_disable();
    // Under the lock, so that a late waker cannot undo it.
    struct run_queue *rq = this_rq();
    spin_lock(&rq->lock);
    WRITE_ONCE(current->state, THREAD_DEAD);
    spin_unlock(&rq->lock);
    switch_away(false);
    panic("a dead thread runs");
}

// The reschedule interrupt: somebody queued a thread here.
void sched_reschedule_interrupt(void)
{
    struct run_queue *rq = this_rq();
    spin_lock(&rq->lock);
    if (rq->count && rq->running == rq->idle)
        WRITE_ONCE(rq->cpu->need_resched, 1);
    else if (rq->count && !rq->cpu->need_resched)
        run_queue_arm_slice(rq);
    spin_unlock(&rq->lock);
}

static bool may_preempt(struct cpu *c)
{
    return READ_ONCE(c->need_resched) && !c->preempt_count && !c->irq_depth;
}

void preempt_enable(void)
{
    preempt_enable_no_resched();
    if (unlikely(this_cpu_read(need_resched)) && irqs_enabled()) {
        irq_disable();
        while (may_preempt(this_cpu()))
            switch_away(true);
        irq_enable();
    }
}

void sched_interrupt_exit(void)
{
    // The idle thread looks by itself when its halt is over; its ledger shows
    // it as halted until then.
    if (current == this_rq()->idle)
        return;
    while (may_preempt(this_cpu()))
        switch_away(true);
}

// --- start-up ---------------------------------------------------------------

static void init_queue(struct cpu *cpu, struct thread *idle)
{
    struct run_queue *rq = &run_queues[cpu->id];
    run_queue_init(rq, cpu);
    rq->idle = rq->running = idle;
    rq->started = clock_now_ns();
    idle->cpu = cpu;
    idle->on_cpu = true;
    idle->state = THREAD_RUNNING;
    idle->affinity = 1u << cpu->id;
    idle->priority = idle->base_priority = PRIORITY_LEVELS - 1;
    cpu->thread = idle;
    ledger_start_up_done(&idle->kernel);
    WRITE_ONCE(cpu->rq, rq); // from here on others may queue threads here
}

// The thread that each CPU is from its first instruction on: its idle thread.
static struct thread idle_threads[CPU_MAX];

void sched_init(void)
{
    struct cpu *cpu = this_cpu();
    struct thread *idle = &idle_threads[cpu->id];
    idle->task = &kernel_task;
    idle->refs = 1;
    list_init(&idle->run_node);
    list_init(&idle->task_node);
    format(idle->name, sizeof(idle->name), "idle/%u", cpu->id);
    init_queue(cpu, idle);
}

void sched_start_cpu(void)
{
    struct cpu *cpu = this_cpu();
    for (;;) {
        irq_disable();
        if (!READ_ONCE(cpu->need_resched)) {
            ledger_idle_enter();
            cpu_idle_wait();
            irq_disable();
            ledger_idle_leave(&current->kernel);
        }
        switch_away(false);
        irq_enable();
    }
}

u32 sched_runnable(void)
{
    u32 n = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        struct run_queue *rq = &run_queues[i];
        n += READ_ONCE(rq->count) + (READ_ONCE(rq->running) != rq->idle);
    }
    return n;
}

void sched_cpu_times(u32 cpu, u64 *user, u64 *kernel, u64 *irq, u64 *idle)
{
    struct ledger_sums s;
    ledger_sums(cpu, &s);
    *user = s.user;
    *kernel = s.kernel + s.start_up;
    *irq = s.irq;
    *idle = s.idle;
}
