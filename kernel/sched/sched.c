// The scheduler: the choice of the next thread of this CPU, and the switch.
//
// Policy (docs/scheduler.md): levels are strict. First kernel threads; then
// interactive threads, which sleep more than they run, round robin on eight
// levels by their score (interactivity.h); then batch threads, least virtual
// time first (fair.h). Against starvation, a level that was passed over for
// PATIENCE gets a turn: a short slice for its threads, one after the other, in
// which they are not preempted. The turns are given to one level after the
// other, so with n levels waiting each has a turn every n * (PATIENCE + a short
// slice).

#include "kernel/base/log.h"
#include "kernel/mm/aspace.h"
#include "kernel/sched/charge.h"
#include "kernel/trace/point.h"
#include "lib/cpu_memory.h"
#include "lib/format.h"
#include "lib/set.h"

static struct run_queue *this_rq(void)
{
    return this_cpu()->rq;
}

// The level to serve next. At least one thread waits.
static u32 choose_level(struct run_queue *rq)
{
    u32 map = rq->bitmap, top = (u32)__builtin_ctz(map);
    if (map == 1u << top)
        return top;
    u64 now = rdtsc();
    if (!rq->overtaking) {
        rq->overtaking = true;
        rq->turn_due = now + sched_cycles.turn_wait;
    }
    if ((s64)(rq->turn_due - now) <= 0) {
        rq->turn_due = now + sched_cycles.turn_wait;
        rq->turn_end = now + sched_cycles.slice_short;
        u32 after = map & ~((2u << rq->turn) - 1);
        rq->turn = (u32)__builtin_ctz(after ? after : map);
    } else if ((s64)(rq->turn_end - now) <= 0 || !(map & 1u << rq->turn)) {
        return top;
    }
    rq->in_turn = rq->turn != top;
    return rq->turn;
}

static struct thread *pick(struct run_queue *rq)
{
    spin_assert_held(&rq->lock);
    rq->in_turn = false;
    if (!rq->count)
        return NULL;
    u32 level = choose_level(rq);
    struct thread *t = list_first(&rq->levels[level], struct thread, run_node);
    run_queue_remove(rq, t);
    return t;
}

enum switch_reason { BLOCKED, PREEMPTED, YIELDED };

static bool allowed_here(const struct thread *t)
{
    return READ_ONCE(t->affinity.words[this_cpu_read(set_word)]) &
           this_cpu_read(set_bit);
}

// Requeues the thread that leaves the CPU if it is still runnable. True if it
// stays on this CPU and its slice is over.
static bool put_previous(struct run_queue *rq, struct thread *prev,
                         enum switch_reason reason)
{
    spin_assert_held(&rq->lock);
    // Asleep, stopped or dead. A thread dies with interrupts off, so it is not
    // preempted between THREAD_DEAD and its last switch.
    if (prev->state != THREAD_RUNNING && reason == BLOCKED) {
        prev->switches_voluntary++;
        charge_leave(rq, prev);
        return false;
    }
    // A thread preempted between wait_prepare and the sleep is made ready, and
    // checks its condition again: a spurious wake-up, which every waiter
    // allows.
    if (reason == YIELDED)
        prev->switches_voluntary++;
    else
        prev->switches_forced++;
    bool expired = run_queue_expired(rq);
    charge_relevel(prev);
    // sched_switch_finished moves it, when its stack is no longer in use.
    if (!allowed_here(prev)) {
        charge_leave(rq, prev);
        WRITE_ONCE(prev->state, THREAD_READY);
        rq->moving_to = balance_choose(prev, rq->cpu);
        return false;
    }
    run_queue_add(rq, prev, !expired && reason != YIELDED);
    return expired;
}

// With the lock held: then another CPU may make `prev` ready, or end it, so its
// wake-up is the later event, and the listeners get what was true before.
static NOINLINE NOTRACE void unlock_and_tell(struct run_queue *rq,
                                             const struct thread *prev)
{
    struct trace_sched_switch event = {
        .prev = prev->tid,
        .next = current->tid,
        .state = prev->state,
        .at = (u32)prev->since,
    };
    trace_record_switch(&event);
    spin_unlock_irq(&rq->lock, 0);
    trace_notify_switch(&event);
}

// No function may be traced between the switch and its event: the trace would
// have it as a call by the thread that has left.
NOTRACE void sched_switch_finished(struct thread *prev)
{
    struct run_queue *rq = this_rq();
    struct cpu *moving_to = rq->moving_to;
    if (branch_on(&call_tracing))
        call_trace_switched();
    if (branch_on(&trace_is_on))
        trace_switched();
    if (unlikely(moving_to))
        rq->moving_to = NULL;
    WRITE_ONCE(prev->on_cpu, false);
    bool dead = prev->state == THREAD_DEAD;
    if (trace_wanted(sched_switch))
        unlock_and_tell(rq, prev);
    else
        spin_unlock_irq(&rq->lock, 0);
    if (unlikely(moving_to))
        run_queue_place(prev, moving_to);
    if (dead)
        thread_ended(prev);
}

// Makes `next` the running thread of the queue.
static void dispatch(struct run_queue *rq, struct thread *next)
{
    spin_assert_held(&rq->lock);
    WRITE_ONCE(next->state, THREAD_RUNNING);
    WRITE_ONCE(next->cpu, rq->cpu);
    WRITE_ONCE(rq->running, next);
    WRITE_ONCE(rq->level, next->priority);
    if (next->competing) {
        rq->floor = next->virtual_time;
        if (branch_on(&sched_by_user))
            rq->sharers = READ_ONCE(next->share->competing);
    }
}

static void start_slice(struct run_queue *rq, u64 now)
{
    rq->started = now;
    if (rq->count && rq->level != PRIORITY_IDLE)
        run_queue_arm_slice(rq);
}

static void choose_and_switch(enum switch_reason reason)
{
    assert(!irqs_enabled());
    struct run_queue *rq = this_rq();
    spin_lock_irq(&rq->lock);
    struct thread *prev = rq->running, *next = NULL;
    bool expired = false;
    WRITE_ONCE(this_cpu()->need_resched, 0);

    if (prev != rq->idle) {
        if (prev->state == THREAD_RUNNING && !rq->count &&
            allowed_here(prev)) { // no other thread: continue
            spin_unlock_irq(&rq->lock, 0);
            return;
        }
        charge(prev);
        if (reason == YIELDED) // to any other thread, of any level
            next = pick(rq);
        expired = put_previous(rq, prev, reason);
    }
    if (unlikely(rq->overtaking) && rq->bitmap >> rq->level <= 1)
        rq->overtaking = false; // no level less urgent than `prev`'s waits
    if (!next)
        next = pick(rq);
    if (expired)
        balance_push(rq, prev);
    if (!next && cpu_count > 1)
        next = balance_steal(rq);
    if (!next)
        next = rq->idle;

    dispatch(rq, next);
    if (next == prev) {
        assert(!rq->moving_to);
        start_slice(rq, rdtsc());
        spin_unlock_irq(&rq->lock, 0);
        return;
    }
    rq->switches++;
    WRITE_ONCE(next->on_cpu, true);
    start_slice(rq, rdtsc());
    // `next` may be the last thread of a task that is ending, which clears
    // `aspace` concurrently; end_task waits for this CPU.
    struct aspace *as = READ_ONCE(next->aspace);
    if (as != rq->cpu->aspace && as)
        aspace_switch(as);
    rq->cpu->thread = next;
    u64 at = ledger_switch(&next->total);
    prev->since = at;
    next->waited += at - next->since;
    // The last call before the switch: what follows is not traced.
    if (branch_on(&call_tracing))
        call_trace_switch(at);
    prev = arch_switch(prev, next);
    sched_switch_finished(prev);
}

// Interrupts off. Returns with interrupts off, perhaps on another CPU.
static void switch_away(enum switch_reason reason)
{
    enum subsystem was = ledger_divide(IN_SCHEDULING);
    choose_and_switch(reason);
    ledger_divide(was);
}

void schedule(void)
{
    u32 flags = irq_save();
    assert(!this_cpu()->irq_depth && !this_cpu()->preempt_count);
    switch_away(BLOCKED);
    irq_restore(flags);
}

void sched_yield(void)
{
    u32 flags = irq_save();
    switch_away(YIELDED);
    irq_restore(flags);
}

void thread_exit(void)
{
    lockdep_none_held("a thread ends");
    irq_disable();
    // With the lock held, so that a late waker cannot overwrite the state.
    struct run_queue *rq = this_rq();
    spin_lock(&rq->lock);
    WRITE_ONCE(current->state, THREAD_DEAD);
    spin_unlock(&rq->lock);
    switch_away(BLOCKED);
    panic("a dead thread runs");
}

// The reschedule interrupt: another CPU queued a thread here.
void sched_reschedule_interrupt(void)
{
    struct run_queue *rq = this_rq();
    spin_lock(&rq->lock);
    if (rq->count && run_queue_idle(rq))
        WRITE_ONCE(rq->cpu->need_resched, 1);
    else if (rq->count && !rq->cpu->need_resched)
        run_queue_arm_slice(rq);
    spin_unlock(&rq->lock);
}

static bool may_preempt(struct cpu *c)
{
    return READ_ONCE(c->need_resched) && !c->preempt_count && !c->irq_depth;
}

NOTRACE void preempt_enable(void)
{
    preempt_enable_no_resched();
    if (unlikely(this_cpu_read(need_resched)) && irqs_enabled()) {
        irq_disable();
        while (may_preempt(this_cpu()))
            switch_away(PREEMPTED);
        irq_enable();
    }
}

void sched_interrupt_exit(void)
{
    // The idle thread checks need_resched itself when its halt ends; until then
    // the ledger counts it as halted.
    if (current == this_rq()->idle)
        return;
    while (may_preempt(this_cpu()))
        switch_away(PREEMPTED);
}

// --- start-up ---------------------------------------------------------------

static void init_queue(struct cpu *cpu, struct thread *idle)
{
    struct run_queue *rq = run_queues[cpu->id];
    run_queue_init(rq, cpu);
    rq->idle = rq->running = idle;
    rq->started = rdtsc();
    rq->level = PRIORITY_IDLE;
    idle->cpu = cpu;
    idle->on_cpu = true;
    idle->state = THREAD_RUNNING;
    cpu_set_add(&idle->affinity, cpu->id);
    idle->priority = PRIORITY_IDLE;
    cpu->thread = idle;
    ledger_start_up_done(&idle->total);
    WRITE_ONCE(cpu->rq, rq); // from here on other CPUs may queue threads here
}

// Each CPU's idle thread: the code that runs there from start-up on.
static struct thread *idle_threads[CPU_MAX];
CPU_MEMORY(idle_threads, 1);

struct thread *sched_idle_thread(u32 cpu)
{
    return idle_threads[cpu];
}

void sched_init(void)
{
    struct cpu *cpu = this_cpu();
    if (!cpu->id) {
        sched_by_user_init();
        sched_cycles_init();
    }
    struct thread *idle = idle_threads[cpu->id];
    idle->task = &kernel_task;
#ifdef LOCKDEP
    idle->mutexes = &idle->lockdep;
#endif
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
            u64 at = ledger_idle_enter();
            TRACE(cpu_halt, .at = (u32)at);
            cpu_idle_wait();
            at = ledger_idle_leave(&current->total);
            TRACE(cpu_resume, .at = (u32)at);
        }
        switch_away(BLOCKED);
        irq_enable();
    }
}

u32 sched_runnable(void)
{
    u32 n = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        struct run_queue *rq = run_queues[i];
        n += READ_ONCE(rq->count) + !run_queue_idle(rq);
    }
    return n;
}
