// The scheduler: who runs next on this CPU, and the switch to it.
//
// Policy: levels are strict. Within a level, round robin with slices whose
// length follows `nice`. A thread that uses its slice up goes to the batch
// level; one that sleeps earns slice back (half of its sleep), and is
// interactive again when its slice is full. So that batch threads never starve,
// one of them runs at least every STARVATION_NS.
//
// A slice is only timed when somebody else waits: an idle or lonely CPU takes
// no tick.

#include "kernel/errno.h"
#include "kernel/init/log.h"
#include "kernel/mm/aspace.h"
#include "kernel/sched/runqueue.h"
#include "kernel/sched/task.h"
#include "lib/format.h"

#define STARVATION_NS (30 * NSEC_PER_MSEC)
#define SLICE_NS (20 * NSEC_PER_MSEC)

struct run_queue run_queues[CPU_MAX];

static struct run_queue *this_rq(void)
{
    return this_cpu()->rq;
}

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
static void arm_slice(struct run_queue *rq)
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
        arm_slice(rq);
    else
        WRITE_ONCE(this_cpu()->need_resched, 1);
}

// `rq` is locked, t is on no list. Kicks the CPU if it should switch.
static void make_ready(struct run_queue *rq, struct thread *t)
{
    run_queue_add(rq, t, false);
    struct thread *running = rq->running;
    bool preempt = running == rq->idle || t->priority < running->priority;
    if (rq->cpu == this_cpu()) {
        if (preempt)
            WRITE_ONCE(rq->cpu->need_resched, 1);
        else
            arm_slice(rq);
    } else {
        if (preempt)
            WRITE_ONCE(rq->cpu->need_resched, 1);
        // Also when it does not preempt: the CPU may have no slice armed.
        if (preempt || rq->count == 1)
            smp_reschedule(rq->cpu);
    }
}

// Queues a ready thread that is on no list and uses no stack. Interrupts off.
static void place(struct thread *t, struct cpu *target)
{
    spin_lock(&target->rq->lock);
    WRITE_ONCE(t->cpu, target);
    make_ready(target->rq, t);
    spin_unlock(&target->rq->lock);
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
        place(prev, moving_to);
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
        arm_slice(rq);
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
        arm_slice(rq);
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

// --- waking -----------------------------------------------------------------

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
            make_ready(target->rq, t);
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
    place(t, balance_choose(t, this_cpu()));
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

// --- sleeping: the pieces of wait_event -------------------------------------

void wait_prepare(u32 mode)
{
    enum thread_state state =
        mode == WAIT_INTERRUPTIBLE ? THREAD_WAITING : THREAD_SLEEPING;
    // A full barrier: the state is visible before the condition is read.
    __atomic_store_n(&current->state, state, __ATOMIC_SEQ_CST);
}

static void wait_expired(struct timeout *timeout)
{
    struct thread *t = container_of(timeout, struct thread, wait_timeout);
    WRITE_ONCE(t->wake_timed_out, true);
    thread_wake(t);
}

int wait_sleep(u32 mode, u64 deadline)
{
    struct thread *t = current;
    lockdep_may_sleep(t->wait_on ? t->wait_on : "a wait queue");
    assert(!this_cpu_read(preempt_count));
    if (mode == WAIT_INTERRUPTIBLE && signal_waiting())
        return -EINTR;
    if (deadline == WAIT_FOREVER) {
        schedule();
    } else {
        if (deadline <= clock_now_ns())
            return -ETIMEDOUT;
        t->wake_timed_out = false;
        timeout_init(&t->wait_timeout, wait_expired);
        timeout_set(&t->wait_timeout, deadline);
        schedule();
        timeout_cancel(&t->wait_timeout);
        if (t->wake_timed_out)
            return -ETIMEDOUT;
    }
    return mode == WAIT_INTERRUPTIBLE && signal_waiting() ? -EINTR : 0;
}

void wait_finish(void)
{
    // Our own state; a waker that still sees the old one sets it to the same.
    __atomic_store_n(&current->state, THREAD_RUNNING, __ATOMIC_SEQ_CST);
    current->wait_on = NULL;
}

int thread_sleep_until(u64 deadline, u32 mode)
{
    int err = 0;
    current->wait_on = "sleep";
    while (!err) {
        wait_prepare(mode);
        err = wait_sleep(mode, deadline);
    }
    wait_finish();
    return err == -ETIMEDOUT ? 0 : err;
}

// --- start-up ---------------------------------------------------------------

static void init_queue(struct cpu *cpu, struct thread *idle)
{
    struct run_queue *rq = &run_queues[cpu->id];
    spin_init(&rq->lock, "run queue");
    for (u32 i = 0; i < PRIORITY_LEVELS; i++)
        list_init(&rq->levels[i]);
    timeout_init(&rq->slice, slice_over);
    rq->cpu = cpu;
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
