// Load balancing: a waking thread is placed on a CPU that can run it at once;
// an idle CPU steals work; and at the end of a slice the waiting batch thread
// with the least virtual time is pushed to a CPU whose running thread has more.
//
// The push makes shares equal when the number of threads is not a multiple of
// the number of CPUs. It compares global virtual times: a queue's virtual time
// (fair.h) plus its `frame`. Threads bound to their CPUs cannot be moved, so
// the global times of two CPUs can drift apart; then a frame is adjusted so
// that they differ by LAG_MAX at most. Without that bound a thread that moves
// from a CPU with fast virtual time to one with slow virtual time would wait
// there for hours. Only a CPU with waiting threads pushes, so a CPU that is
// idle or runs its only thread takes no tick for it.

#include "kernel/base/log.h"
#include "kernel/sched/charge.h"

static u32 load_of(const struct run_queue *rq)
{
    return READ_ONCE(rq->count) + !run_queue_idle(rq);
}

static bool allowed(const struct thread *t, u32 cpu)
{
    return cpu_set_has(&t->affinity, cpu) && cpus[cpu]->online;
}

// The cost of running `t` on a CPU, lower is better. Lowest for an idle CPU,
// then for one that runs a less urgent level; else it grows with the queue's
// length. The CPU where `t` ran last has a small bonus: its caches are warm.
static u32 cost_of(const struct thread *t, const struct run_queue *rq,
                   const struct run_queue *last)
{
    u32 level = READ_ONCE(rq->level);
    if (level == PRIORITY_IDLE)
        return rq != last;
    if (READ_ONCE(t->priority) < level)
        return 2 + (rq != last);
    return 4 + 2 * load_of(rq) + 3 * (rq != last);
}

// Reads the thread and other CPUs' queues without their locks: an outdated
// choice costs time, not correctness.
struct cpu *balance_choose_of_many(const struct thread *t, struct cpu *last)
{
    assert(cpu_count > 1);
    if (run_queue_idle(last->rq) && allowed(t, last->id))
        return last;
    u32 best = last->id, least = ~0u;
    for (u32 i = 0; i < cpu_count; i++) {
        if (!allowed(t, i))
            continue;
        u32 cost = cost_of(t, run_queues[i], last->rq);
        if (cost < least) {
            best = i;
            least = cost;
        }
    }
    return cpus[best];
}

// --- an idle CPU steals work ------------------------------------------------

static struct thread *find_movable(const struct run_queue *from, u32 to)
{
    for (u32 map = from->bitmap; map; map &= map - 1) {
        struct thread *t;
        list_for_each(t, &from->levels[__builtin_ctz(map)], run_node) {
            if (allowed(t, to))
                return t;
        }
    }
    return NULL;
}

static struct thread *steal_from(struct run_queue *from, struct run_queue *rq)
{
    spin_assert_held(&rq->lock);
    // Against the lock order, hence a try-lock. A CPU that fails to get the
    // lock goes idle; a CPU with waiting threads pushes work to it later
    // (balance_push).
    if (!spin_try_lock(&from->lock))
        return NULL;
    struct thread *t = find_movable(from, rq->cpu->id);
    if (t) {
        run_queue_remove(from, t);
        run_queue_rebase(from, rq, t);
        run_queue_assign(t, rq->cpu);
    }
    spin_unlock(&from->lock);
    return t;
}

struct thread *balance_steal(struct run_queue *rq)
{
    spin_assert_held(&rq->lock);
    for (struct cpu_set tried = cpu_set_of(rq->cpu->id);;) {
        struct run_queue *longest = NULL;
        for (u32 i = 0; i < cpu_count; i++) {
            struct run_queue *from = run_queues[i];
            u32 count = READ_ONCE(from->count);
            if (count > (longest ? READ_ONCE(longest->count) : 0) &&
                !cpu_set_has(&tried, i))
                longest = from;
        }
        if (!longest)
            return NULL;
        struct thread *t = steal_from(longest, rq);
        if (t)
            return t;
        cpu_set_add(&tried, longest->cpu->id);
    }
}

// --- a busy CPU pushes work away --------------------------------------------

// The queue of an idle CPU; if there is none, of the next CPU in round-robin
// order. NULL: that CPU is offline, or this is the only CPU.
static struct run_queue *candidate(struct run_queue *rq, const struct thread *t)
{
    for (u32 i = 0; i < cpu_count; i++) {
        if (run_queue_idle(run_queues[i]) && allowed(t, i))
            return run_queues[i];
    }
    rq->push_candidate = (rq->push_candidate + 1) % cpu_count;
    if (rq->push_candidate == rq->cpu->id)
        rq->push_candidate = (rq->push_candidate + 1) % cpu_count;
    struct run_queue *to = run_queues[rq->push_candidate];
    return to != rq && cpus[rq->push_candidate]->online ? to : NULL;
}

// Global virtual time of the thread running on `to`, minus that of `t`, which
// waits on `rq`. If they differ by more than LAG_MAX, adjusts a frame so that
// they differ by LAG_MAX.
static s64 lead(struct run_queue *rq, const struct thread *t,
                struct run_queue *to)
{
    u64 there = charge_now(to) + to->frame;
    s64 lead = (s64)(there - (t->virtual_time + rq->frame));
    s64 lag_max = sched_cycles.lag_max;
    if (lead > lag_max) {
        rq->frame += (u64)(lead - lag_max);
        return lag_max;
    }
    if (lead < -lag_max) {
        to->frame += (u64)(-lag_max - lead);
        return -lag_max;
    }
    return lead;
}

// Whether the CPU has run its only thread for longer than LEAD_MAX. The level
// of such a thread is not recomputed while it runs alone, so it may still be an
// interactive one although the thread no longer deserves it.
static bool has_run_alone(const struct run_queue *rq)
{
    s64 ran = (s64)(rdtsc() - rq->started);
    return !rq->count && ran > sched_cycles.lead_max;
}

// Whether `to`, which does not run a batch thread, has more room than `rq`.
static bool has_room(const struct run_queue *rq, const struct run_queue *to)
{
    if (to->level == PRIORITY_IDLE)
        return !to->count;
    return to->count + 1 < rq->count || has_run_alone(to);
}

void balance_push(struct run_queue *rq, struct thread *prev)
{
    spin_assert_held(&rq->lock);
    struct thread *t = run_queue_first_batch(rq);
    struct run_queue *to = t ? candidate(rq, t) : NULL;
    if (!to || !spin_try_lock(&to->lock))
        return;
    bool move = to->level == PRIORITY_BATCH
                    ? lead(rq, t, to) > sched_cycles.lead_max
                    : has_room(rq, to);
    if (move && allowed(t, to->cpu->id)) {
        run_queue_remove(rq, t);
        run_queue_rebase(rq, to, t);
        if (t == prev) { // its stack is still in use: sched_switch_finished
            rq->moving_to = to->cpu;
        } else {
            u64 since = t->since; // it waits on
            run_queue_assign(t, to->cpu);
            run_queue_make_ready(to, t);
            t->since = since;
        }
    }
    spin_unlock(&to->lock);
}
