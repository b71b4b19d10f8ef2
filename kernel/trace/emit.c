// What happens at a trace point that is on: the event is recorded in the traces
// that want it, then the point's listeners are called.
//
// All of it is one function for each point, which knows the record's size. The
// list of traces is walked with interrupts off, without a lock: a trace is
// complete when it is put in, and is freed only after every CPU has taken an
// interrupt. An emitter that finds no trace and no listener does nothing, so
// one may be entered just before its point is switched off.
#include "kernel/trace/emit.h"

#include "kernel/base/log.h"
#include "kernel/sched/thread.h"
#include "kernel/trace/point.h"

static struct trace_target *targets;

// --- recording --------------------------------------------------------------

static ALWAYS_INLINE bool is_chosen(const struct trace_target *t)
{
    const struct task *task = current->task;
    if (unlikely(t->only != NULL))
        return task == t->only;
    return task != t->except;
}

// A switch to or from a chosen thread is one of its events. It is reported by
// the thread that comes. A wake-up is an event of the thread that is woken, so
// whoever wakes it, it is in a trace of all tasks.
static ALWAYS_INLINE bool is_wanted(const struct trace_target *t,
                                    struct trace_cpu *c, u32 point)
{
    bool is = is_chosen(t);
    if (point == TRACE_sched_wake)
        return is || !t->only;
    if (point != TRACE_sched_switch)
        return is;
    bool was = c->was_chosen;
    c->was_chosen = is;
    return is || was;
}

static ALWAYS_INLINE void record(struct trace_target *t, u32 point,
                                 const void *fields, u32 bytes)
{
    struct trace_cpu *c = &t->cpu[this_cpu_read(id)];
    if (READ_ONCE(t->points) & 1u << point && is_wanted(t, c, point))
        trace_put(&c->ring, point, fields, bytes);
}

// Both: with interrupts off. There is one trace most often: in its part of the
// code no register is kept for the next one.
static ALWAYS_INLINE void record_in(struct trace_target *const *list, u32 point,
                                    const void *fields, u32 bytes)
{
    struct trace_target *t = __atomic_load_n(list, __ATOMIC_ACQUIRE);
    if (unlikely(!t))
        return;
    struct trace_target *next = READ_ONCE(t->next);
    record(t, point, fields, bytes);
    for (; unlikely(next != NULL); next = READ_ONCE(next->next))
        record(next, point, fields, bytes);
}

static ALWAYS_INLINE void notify(struct trace_listener *const *listeners,
                                 const void *fields)
{
    struct trace_listener *l = __atomic_load_n(listeners, __ATOMIC_ACQUIRE);
    for (; unlikely(l != NULL); l = __atomic_load_n(&l->next, __ATOMIC_ACQUIRE))
        l->fn(fields);
}

static ALWAYS_INLINE void emit(struct trace_target *const *list,
                               struct trace_listener *const *listeners,
                               u32 point, const void *fields, u32 bytes)
{
    u32 flags = irq_save();
    record_in(list, point, fields, bytes);
    notify(listeners, fields);
    irq_restore(flags);
}

#define POINT(group, name, fields, when)                                \
    static void emit_##group##_##name(const void *record)               \
    {                                                                   \
        emit(&targets, &trace_points[TRACE_##group##_##name].listeners, \
             TRACE_##group##_##name, record,                            \
             sizeof(struct trace_##group##_##name));                    \
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
    record_in(&targets, TRACE_sched_switch, record, sizeof(*record));
}

void trace_notify_switch(const struct trace_sched_switch *record)
{
    notify(&trace_points[TRACE_sched_switch].listeners, record);
}

// --- what it costs ----------------------------------------------------------

// A target and a list of listeners of its own: the same code, of which nobody
// else sees anything.
static struct trace_target *measured;
static struct trace_listener *no_listeners;

static NOINLINE void emit_measured(const void *record)
{
    emit(&measured, &no_listeners, TRACE_lock_contended, record,
         sizeof(struct trace_lock_contended));
}

#define MEASURED_ROUNDS 4u
#define MEASURED_EVENTS 16u // all rounds fit into the ring's first page

u32 trace_target_measure(struct trace_target *t)
{
    struct trace_lock_contended record = { .lock = 1 };
    u64 least = UINT32_MAX;
    u32 flags = irq_save();
    struct trace_ring *r = &t->cpu[this_cpu()->id].ring;
    const struct task *only = t->only, *except = t->except;
    t->only = t->except = NULL;
    t->points = 1u << TRACE_lock_contended;
    measured = t;
    for (u32 i = 0; i < MEASURED_ROUNDS; i++) {
        u64 began = rdtsc();
        for (u32 n = 0; n < MEASURED_EVENTS; n++)
            emit_measured(&record);
        least = MIN(least, rdtsc() - began);
    }
    measured = NULL;
    t->points = 0;
    t->only = only;
    t->except = except;
    trace_ring_clear(r);
    irq_restore(flags);
    return (u32)least / MEASURED_EVENTS;
}

// --- which traces -----------------------------------------------------------

void trace_target_add(struct trace_target *t)
{
    t->next = targets;
    __atomic_store_n(&targets, t, __ATOMIC_RELEASE);
}

void trace_target_remove(struct trace_target *t)
{
    struct trace_target **at = &targets;
    assert(!t->points);
    while (*at != t)
        at = &(*at)->next;
    WRITE_ONCE(*at, t->next);
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
    for (u32 bits = before & ~points; bits; bits &= bits - 1)
        branch_set(&trace_points[__builtin_ctz(bits)].branch, false);
    if (before & ~points)
        smp_quiesce_others();
}
