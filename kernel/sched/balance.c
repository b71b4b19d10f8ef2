// Load balancing: a thread goes where a CPU is free; an idle CPU takes work; a
// thread whose slice is over moves on when another CPU has fewer to serve.

#include "kernel/sched/runqueue.h"

static u32 load_of(const struct run_queue *rq)
{
    return READ_ONCE(rq->count) + (READ_ONCE(rq->running) != rq->idle);
}

static bool allowed(const struct thread *t, u32 cpu)
{
    return t->affinity & (1u << cpu);
}

// Reads other queues without their locks: a choice that is out of date by the
// time it is carried out costs time, not correctness.
struct cpu *balance_choose(struct thread *t, struct cpu *last)
{
    u32 best = CPU_MAX, best_load = ~0u;
    if (allowed(t, last->id) && !load_of(last->rq))
        return last;
    for (u32 i = 0; i < cpu_count; i++) {
        if (!allowed(t, i) || !cpus[i].online)
            continue;
        u32 load = load_of(&run_queues[i]) * 2 + (i != last->id);
        if (load < best_load) {
            best = i;
            best_load = load;
        }
    }
    // A busy neighbour is no better than the CPU whose caches know the thread.
    if (best_load >= 2 && allowed(t, last->id) &&
        load_of(last->rq) * 2 <= best_load + 2)
        return last;
    return &cpus[best];
}

static struct thread *find_movable(struct run_queue *from, u32 to)
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

struct thread *balance_steal(struct run_queue *rq)
{
    for (u32 i = 1; i < cpu_count; i++) {
        struct run_queue *from = &run_queues[(rq->cpu->id + i) % cpu_count];
        // Out of order for the lock rule, so only tried: the loser of a race
        // for it goes idle and is woken by whoever queues the next thread.
        if (!READ_ONCE(from->count) || !spin_try_lock(&from->lock))
            continue;
        struct thread *t = find_movable(from, rq->cpu->id);
        if (t) {
            run_queue_remove(from, t);
            WRITE_ONCE(t->cpu, rq->cpu);
        }
        spin_unlock(&from->lock);
        if (t)
            return t;
    }
    return NULL;
}

struct cpu *balance_expired(struct run_queue *rq)
{
    u32 mine = rq->count + 1, target = rq->cpu->id, least = mine;
    for (u32 i = 0; i < cpu_count; i++) {
        u32 load = load_of(&run_queues[i]);
        if (allowed(rq->running, i) && load < least) {
            least = load;
            target = i;
        }
    }
    // One thread more here than there: moving it turns the odds round, so that
    // three threads on two CPUs get equal shares in the long run.
    if (mine - least >= 2 || (mine - least == 1 && ++rq->expiries % 4 == 0))
        return &cpus[target];
    return rq->cpu;
}
