// What happens at a trace point that is on: the event is recorded in the traces
// that want it, then the point's listeners are called.
//
// Most often there is one trace and no listener. Then each CPU has its part of
// the trace at hand (`trace` of struct cpu) while the thread that runs there is
// one whose events are wanted, and `direct` says of which points: the event is
// written there, by a function of the point, which knows the record's size. All
// other events take the general way, emit_to_all.
//
// The list of traces is walked with interrupts off, without a lock: a trace is
// complete when it is put in, and is freed only after every CPU has taken an
// interrupt. An emitter that finds no trace and no listener does nothing, so
// one may be entered just before its point is switched off.
#include "kernel/trace/emit.h"

#include "kernel/base/log.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/trace/point.h"

static struct trace_target *targets;
static struct spinlock direct_lock = SPINLOCK_INIT("trace direct");
struct branch trace_is_on;

// --- recording --------------------------------------------------------------

// A switch to or from a chosen thread is one of its events. It is reported by
// the thread that comes. A wake-up is an event of the thread that is woken, so
// whoever wakes it, it is in a trace of all tasks.
static bool is_wanted(const struct trace_target *t, const struct trace_cpu *c,
                      u32 point)
{
    if (!(READ_ONCE(t->points) & 1u << point))
        return false;
    return point == TRACE_sched_switch             ? c->switched
           : point == TRACE_sched_pmc              ? c->left
           : point == TRACE_sched_wake && !t->only ? true
                                                   : c->chosen;
}

static void put(struct trace_ring *r, u32 point, const void *fields, u32 bytes)
{
    u32 words = 1 + (bytes + 3) / 4;
    u64 place = trace_ring_reserve(r, words);
    u32 *record = (u32 *)(u32)place;
    if (!record)
        return;
    memcpy(record + 1, fields, bytes); // the rest is 0
    trace_publish(record, (u32)(place >> 32), point, words);
}

static struct trace_target *first_target(void)
{
    return __atomic_load_n(&targets, __ATOMIC_ACQUIRE);
}

static void record_in_all(u32 point, const void *fields, u32 bytes)
{
    u32 cpu = this_cpu_read(id);
    for (struct trace_target *t = first_target(); t; t = READ_ONCE(t->next)) {
        if (is_wanted(t, &t->cpu[cpu], point))
            put(&t->cpu[cpu].ring, point, fields, bytes);
    }
}

static void notify(u32 point, const void *fields)
{
    struct trace_listener *const *from = &trace_points[point].listeners, *l;
    while ((l = __atomic_load_n(from, __ATOMIC_ACQUIRE))) {
        l->fn(fields);
        from = &l->next;
    }
}

static NOINLINE void emit_to_all(u32 point, const void *fields, u32 bytes)
{
    record_in_all(point, fields, bytes);
    notify(point, fields);
}

static ALWAYS_INLINE void emit(u32 point, const void *fields, u32 bytes)
{
    u32 flags = irq_save();
    struct trace_cpu *c = this_cpu_read(trace);
    if (likely(c && word_has(&c->direct, 1u << point)))
        trace_put(&c->ring, point, fields, bytes);
    else
        emit_to_all(point, fields, bytes);
    irq_restore(flags);
}

#define POINT(group, name, fields, when)                  \
    static void emit_##group##_##name(const void *record) \
    {                                                     \
        emit(TRACE_##group##_##name, record,              \
             sizeof(struct trace_##group##_##name));      \
    }
#include <strobe/points.def>
#undef POINT

struct trace_point trace_points[TRACE_POINTS] = {
#define POINT(group, name, fields, when) \
    [TRACE_##group##_##name] = { .emit = emit_##group##_##name },
#include <strobe/points.def>
#undef POINT
};

void trace_record_switch(const struct trace_sched_switch *record)
{
    record_in_all(TRACE_sched_switch, record, sizeof(*record));
}

void trace_record_sample(const struct trace_profile_sample *record)
{
    record_in_all(TRACE_profile_sample, record, sizeof(*record));
}

void trace_record_pmc(const struct trace_sched_pmc *record)
{
    record_in_all(TRACE_sched_pmc, record, sizeof(*record));
}

void trace_notify_switch(const struct trace_sched_switch *record)
{
    notify(TRACE_sched_switch, record);
}

// --- whose events -----------------------------------------------------------

static bool is_chosen(const struct trace_target *t)
{
    const struct task *task = current->task;
    return t->only ? task == t->only : task != t->except;
}

// Interrupts are off. `switched`: another thread has begun to run.
static void choose(bool switched)
{
    struct cpu *here = this_cpu();
    struct trace_target *first = first_target(), *t = first;
    for (; t; t = READ_ONCE(t->next)) {
        struct trace_cpu *c = &t->cpu[here->id];
        bool is = is_chosen(t);
        if (switched) {
            c->switched = c->chosen || is;
            c->left = c->chosen;
        }
        c->chosen = is;
        // Else the event of the switch says which thread comes.
        if (switched && !(READ_ONCE(t->points) & 1u << TRACE_sched_switch))
            trace_ring_thread_changed(&c->ring);
    }
    struct trace_cpu *c = first ? &first->cpu[here->id] : NULL;
    here->trace = c && c->chosen ? c : NULL;
}

void trace_switched(void)
{
    choose(true);
}

static void choose_here(void *unused UNUSED)
{
    choose(false);
}

// --- what it costs ----------------------------------------------------------

#define MEASURED_ROUNDS 4u
#define MEASURED_EVENTS 16u // all rounds fit into the ring's first page

u32 trace_target_measure(struct trace_target *t)
{
    struct trace_lock_contended record = { .lock = 1 };
    u64 least = UINT32_MAX;
    u32 flags = irq_save();
    struct cpu *here = this_cpu();
    struct trace_cpu *c = &t->cpu[here->id], *was = here->trace;
    c->direct = 1u << TRACE_lock_contended;
    here->trace = c;
    for (u32 i = 0; i < MEASURED_ROUNDS; i++) {
        u64 began = rdtsc();
        for (u32 n = 0; n < MEASURED_EVENTS; n++)
            trace_points[TRACE_lock_contended].emit(&record);
        least = MIN(least, rdtsc() - began);
    }
    here->trace = was;
    c->direct = 0;
    trace_ring_clear(&c->ring);
    irq_restore(flags);
    return (u32)least / MEASURED_EVENTS;
}

// --- which traces -----------------------------------------------------------

static u32 listened_points(void)
{
    u32 points = 0;
    for (u32 i = 0; i < TRACE_POINTS; i++)
        points |= (u32) !!READ_ONCE(trace_points[i].listeners) << i;
    return points;
}

static void set_direct(struct trace_target *t, u32 points)
{
    for (u32 i = 0; i < cpu_count; i++)
        WRITE_ONCE(t->cpu[i].direct, points);
}

void trace_update_direct(void)
{
    u32 flags = spin_lock_irq(&direct_lock); // no trace is freed meanwhile
    struct trace_target *first = first_target();
    bool one = first && !READ_ONCE(first->next);
    for (struct trace_target *t = first; t; t = READ_ONCE(t->next))
        set_direct(t, one ? READ_ONCE(t->points) & ~listened_points() : 0);
    spin_unlock_irq(&direct_lock, flags);
}

// A second trace takes the direct way away before it has any event.
void trace_target_add(struct trace_target *t)
{
    branch_set(&trace_is_on, true);
    t->next = targets;
    __atomic_store_n(&targets, t, __ATOMIC_RELEASE);
    trace_update_direct();
    smp_call_all(choose_here, NULL);
}

void trace_target_remove(struct trace_target *t)
{
    struct trace_target **at = &targets;
    assert(!t->points);
    while (*at != t)
        at = &(*at)->next;
    WRITE_ONCE(*at, t->next);
    smp_call_all(choose_here, NULL);
    trace_update_direct();
    branch_set(&trace_is_on, false);
}

const struct trace_target *trace_targets(void)
{
    return __atomic_load_n(&targets, __ATOMIC_ACQUIRE);
}

void trace_target_set(struct trace_target *t, u32 points)
{
    u32 before = t->points;
    for (u32 bits = points & ~before; bits; bits &= bits - 1)
        branch_set(&trace_points[__builtin_ctz(bits)].branch, true);
    WRITE_ONCE(t->points, points); // all at once
    trace_update_direct();
    for (u32 bits = before & ~points; bits; bits &= bits - 1)
        branch_set(&trace_points[__builtin_ctz(bits)].branch, false);
    if (before & ~points)
        smp_quiesce_others();
}
