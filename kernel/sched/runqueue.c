// Run queues: the lists, and the timing of slices.
//
// A slice is timed only while another thread waits: a CPU that is idle or runs
// its only thread takes no tick.

#include "kernel/sched/runqueue.h"
#include "kernel/base/log.h"

#include "kernel/sched/charge.h"
#include "lib/cpu_memory.h"

#define HISTORY_NS (4 * NSEC_PER_SEC)
#define INHERITED_NS (100 * NSEC_PER_MSEC)
#define SLICE_BATCH_NS (4 * NSEC_PER_MSEC)
#define SLICE_SHORT_NS (1 * NSEC_PER_MSEC)
#define TURN_WAIT_NS (10 * NSEC_PER_MSEC)
#define LEAD_MAX_NS (2 * SLICE_BATCH_NS)
#define LAG_MAX_NS (100 * NSEC_PER_MSEC)
#define LAG_MAX_BY_USER_NS NSEC_PER_SEC // a slice of one thread of a thousand

// Virtual times start well above 0, so that a thread that is behind does not
// get one below 0.
#define FLOOR_START (1ull << 48)

struct run_queue *run_queues[CPU_MAX];
CPU_MEMORY(run_queues, 1);
struct sched_cycles sched_cycles;

static u64 cycles(u64 ns)
{
    return clock_tsc_hz() / 1000 * (ns / NSEC_PER_USEC) / 1000;
}

void sched_cycles_init(void)
{
    u64 lag_max =
        cycles(branch_on(&sched_by_user) ? LAG_MAX_BY_USER_NS : LAG_MAX_NS);
    lag_max = MIN(lag_max, (u64)UINT32_MAX);
    sched_cycles = (struct sched_cycles){
        .history = history_units(cycles(HISTORY_NS)),
        .inherited = history_units(cycles(INHERITED_NS)),
        .slice_batch = (u32)cycles(SLICE_BATCH_NS),
        .slice_short = (u32)cycles(SLICE_SHORT_NS),
        .turn_wait = (u32)cycles(TURN_WAIT_NS),
        .lead_max = (u32)cycles(LEAD_MAX_NS),
        .lag_max = (u32)lag_max,
    };
}

static const struct tsc_rate_observer by_rate = { sched_cycles_init };
TSC_RATE_OBSERVER(by_rate);

// --- the lists --------------------------------------------------------------

// The node before which to insert `t`. Searches from the back for a thread that
// returns from its slice, and from the front for one that wakes: the position
// is usually near that end.
static struct list *batch_position(struct run_queue *rq, struct thread *t,
                                   bool from_front)
{
    spin_assert_held(&rq->lock);
    struct list *head = &rq->levels[PRIORITY_BATCH], *at;
    u64 key = t->virtual_time;
    if (from_front) {
        for (at = head->next; at != head; at = at->next) {
            if (list_entry(at, struct thread, run_node)->virtual_time > key)
                break;
        }
        return at;
    }
    for (at = head; at->prev != head; at = at->prev) {
        if (list_entry(at->prev, struct thread, run_node)->virtual_time <= key)
            break;
    }
    return at;
}

// A batch thread starts to compete: its virtual time is the queue's floor plus
// its debt.
static struct list *enter_batch(struct run_queue *rq, struct thread *t)
{
    spin_assert_held(&rq->lock);
    if (rq->level == PRIORITY_BATCH && !run_queue_first_batch(rq))
        rq->floor = charge_now(rq); // it ran alone and was not charged
    t->virtual_time = rq->floor + t->debt;
    charge_compete(t, true);
    return batch_position(rq, t, true);
}

void run_queue_add(struct run_queue *rq, struct thread *t, bool front)
{
    spin_assert_held(&rq->lock);
    u32 level = t->priority;
    struct list *before = &rq->levels[level];
    if (front)
        before = before->next;
    if (level == PRIORITY_BATCH)
        before =
            t->competing ? batch_position(rq, t, false) : enter_batch(rq, t);
    list_push_back(before, &t->run_node);
    rq->bitmap |= 1u << level;
    ADD_ONCE(rq->count, 1);
    t->since = rdtsc();
    WRITE_ONCE(t->state, THREAD_READY);
}

void run_queue_rebase(const struct run_queue *from, const struct run_queue *to,
                      struct thread *t)
{
    if (!t->competing)
        return;
    s64 lag_max = sched_cycles.lag_max;
    s64 ahead = (s64)(t->virtual_time + from->frame - to->frame - to->floor);
    t->virtual_time = to->floor + (u64)MIN(MAX(ahead, -lag_max), lag_max);
}

// --- slices -----------------------------------------------------------------

// Of a batch thread that has a part of this many of a user's share.
static NOINLINE u32 weighted_slice(int nice, u32 parts)
{
    u32 slice =
        sched_cycles.slice_batch / FAIR_WEIGHT_0 * fair_weight(MAX(nice, 0));
    return MAX(slice / parts, sched_cycles.slice_short);
}

static NOINLINE u32 rest_of_turn(const struct run_queue *rq)
{
    return (u32)MAX((s64)(rq->turn_end - rq->started), 0);
}

static u32 slice_of(const struct run_queue *rq, const struct thread *t)
{
    if (t->priority < PRIORITY_INTERACTIVE)
        return sched_cycles.slice_batch;
    if (rq->in_turn)
        return rest_of_turn(rq);
    if (t->priority < PRIORITY_BATCH)
        return sched_cycles.slice_short;
    int nice = nice_of(t);
    if (branch_on(&sched_by_user))
        return weighted_slice(nice, rq->sharers);
    return nice <= 0 ? sched_cycles.slice_batch : weighted_slice(nice, 1);
}

bool run_queue_expired(const struct run_queue *rq)
{
    return (s64)(rdtsc() - rq->started) >= slice_of(rq, rq->running);
}

void run_queue_arm_slice(struct run_queue *rq)
{
    if (rq->slice_armed)
        return;
    rq->slice_armed = true;
    u64 ran = rdtsc() - rq->started;
    u32 slice = slice_of(rq, rq->running);
    u64 left = ran < slice ? clock_tsc_to_ns(slice - ran) : 0;
    callout_set(&rq->slice, clock_now_ns() + left);
}

// The slice's callout. It fires too early if it was armed for a thread that has
// left the CPU since: it is then armed again.
static void slice_over(struct callout *callout)
{
    struct run_queue *rq = container_of(callout, struct run_queue, slice);
    rq->slice_armed = false;
    // Reads `count` without the lock. A CPU that queues a thread here right now
    // also sends a reschedule interrupt. If the last waiting thread is stolen
    // right now, the scheduler finds none and the running thread continues.
    if (!READ_ONCE(rq->count) || run_queue_idle(rq))
        return;
    if (run_queue_expired(rq))
        WRITE_ONCE(this_cpu()->need_resched, 1);
    else
        run_queue_arm_slice(rq);
}

// --- threads that become ready ----------------------------------------------

void run_queue_make_ready(struct run_queue *rq, struct thread *t)
{
    run_queue_add(rq, t, false);
    bool preempt = t->priority < rq->level && !rq->in_turn;
    bool sees = false;
    if (preempt) {
        sees = cpu_idle_sees(rq->cpu);
        WRITE_ONCE(rq->cpu->need_resched, 1);
    }
    if (rq->cpu == this_cpu()) {
        if (!preempt)
            run_queue_arm_slice(rq);
    } else if (preempt || rq->count == 1) {
        // Also the first waiting thread: the CPU may have no slice armed.
        if (!sees)
            smp_reschedule(rq->cpu);
    }
}

struct run_queue *run_queue_lock_of(const struct thread *t)
{
    assert(!irqs_enabled());
    for (;;) {
        struct cpu *cpu = READ_ONCE(t->cpu);
        spin_lock(&cpu->rq->lock);
        if (READ_ONCE(t->cpu) == cpu)
            return cpu->rq;
        spin_unlock(&cpu->rq->lock);
    }
}

void run_queue_place(struct thread *t, struct cpu *target)
{
    // Take the old queue's lock before changing the thread under the new one's:
    // a CPU that uses the thread under the old lock has then finished.
    struct run_queue *rq = run_queue_lock_of(t);
    run_queue_assign(t, target);
    if (rq != target->rq) {
        spin_unlock(&rq->lock);
        rq = target->rq;
        spin_lock(&rq->lock);
    }
    bool was_ready = t->state == THREAD_READY; // it moves, and waits on
    u64 since = t->since;
    run_queue_make_ready(rq, t);
    if (was_ready)
        t->since = since;
    else
        TRACE(sched_wake, .thread = t->tid, .cpu = target->id,
              .at = (u32)t->since);
    spin_unlock(&rq->lock);
}

void run_queue_init(struct run_queue *rq, struct cpu *cpu)
{
    spin_init(&rq->lock, "run queue");
    for (u32 i = 0; i < PRIORITY_LEVELS; i++)
        list_init(&rq->levels[i]);
    callout_init(&rq->slice, slice_over, CALLOUT_INTERRUPT);
    rq->floor = FLOOR_START;
    rq->sharers = 1;
    rq->cpu = cpu;
}
