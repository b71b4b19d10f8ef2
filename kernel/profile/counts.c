// Counting streams.
//
// While a thread of a target runs, the stream's group of hardware events is
// loaded on its CPU: counts_switched loads and unloads groups at context
// switches, and a callout of each CPU multiplexes the events of a group.
//
// `tasks_lock` guards the task statistics that a stream's sums are computed
// from. `active` is the mask of streams that count on the CPUs. A stream's bit
// is cleared first, then every CPU unloads its group, then it is freed.

#include "kernel/profile/counts.h"

#include "arch/clock.h"
#include "arch/core_clock.h"
#include "arch/cpu.h"
#include "arch/pmu.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/counted_cpu.h"
#include "kernel/stream/stream.h"
#include "kernel/task/permission.h"
#include "kernel/task/syscall_table.h"
#include "kernel/task/task.h"
#include "kernel/task/usage.h"
#include "kernel/trace/point.h"
#include "lib/string.h"

#define COUNTS_MAX 16
// Between two reads of counters that need not be shared.
#define READ_NS (10 * NSEC_PER_MSEC)
#define KNOWN_FLAGS (SPROFILE_O_FROM_EXEC | SPROFILE_O_CHILDREN)

// Software events, which the kernel counts.
enum software_event {
    TASK_CLOCK,
    USER_TIME,
    KERNEL_TIME,
    CONTEXT_SWITCHES,
    CPU_MIGRATIONS,
    PAGE_FAULTS,
    SYSTEM_CALLS,
    SOFTWARE_EVENTS,
};

static const struct {
    const char *name;
    enum sprofile_count_kind kind;
} software_events[SOFTWARE_EVENTS] = {
    [TASK_CLOCK] = { "task-clock", SPROFILE_COUNT_NS },
    [USER_TIME] = { "user-time", SPROFILE_COUNT_NS },
    [KERNEL_TIME] = { "kernel-time", SPROFILE_COUNT_NS },
    [CONTEXT_SWITCHES] = { "context-switches", SPROFILE_COUNT_EVENTS },
    [CPU_MIGRATIONS] = { "cpu-migrations", SPROFILE_COUNT_EVENTS },
    [PAGE_FAULTS] = { "page-faults", SPROFILE_COUNT_EVENTS },
    [SYSTEM_CALLS] = { "system-calls", SPROFILE_COUNT_EVENTS },
};

struct sums {
    u64 of[SOFTWARE_EVENTS]; // times in TSC cycles
};

struct event {
    enum sprofile_count_kind kind;
    enum software_event software; // SOFTWARE_EVENTS: a hardware event
    u32 group_index;              // hardware event: its index in the group
    const char *why_not;
};

struct counts {
    struct stream stream;
    u32 events;
    struct event event[SPROFILE_COUNTS_MAX];
    struct pmu_counting *group;          // NULL: no hardware event
    struct sums ended, base;             // of ended targets; at the start
    struct strobe_core_clock clock_base; // its cycles at the start
};

static u32 active; // mask of slots; marked accesses

static struct {
    struct counted_cpu counted;
    struct callout turn;
} per_cpu[CPU_MAX]; // accessed on its own CPU only, interrupts off

// --- hardware events --------------------------------------------------------

static struct counts *counts_of(struct stream *s)
{
    return container_of(s, struct counts, stream);
}

// The group of an active stream.
static struct pmu_counting *group_of(u32 slot)
{
    assert_checked(slot < STREAMS_MAX && streams[slot]);
    return counts_of(streams[slot])->group;
}

static void group_in(u32 slot)
{
    pmu_counting_in(group_of(slot));
}

static void group_out(u32 slot)
{
    pmu_counting_out(group_of(slot));
}

static const struct counted_ops group_ops = { group_in, group_out };

static void turn(struct callout *c)
{
    assert_checked(!irqs_enabled());
    u32 in = per_cpu[this_cpu()->id].counted.in;
    bool shared = false;
    for (u32 left = in; left; left &= left - 1)
        shared |= pmu_counting_turn(group_of((u32)__builtin_ctz(left)));
    if (in)
        callout_set(c, clock_now_ns() + (shared ? PMU_TURN_NS : READ_NS));
}

static void counts_switched(void)
{
    assert_checked(!irqs_enabled());
    u32 cpu = this_cpu()->id;
    u32 wanted = READ_ONCE(current->task->streams) & READ_ONCE(active);
    if (wanted == per_cpu[cpu].counted.in)
        return;
    counted_switch(&per_cpu[cpu].counted, wanted, &group_ops);
    if (wanted && !callout_pending(&per_cpu[cpu].turn)) {
        callout_init(&per_cpu[cpu].turn, turn, CALLOUT_INTERRUPT);
        callout_set(&per_cpu[cpu].turn, clock_now_ns() + PMU_TURN_NS);
    }
}

static void switched(const void *record UNUSED)
{
    counts_switched();
}

static struct trace_listener switch_listener = { .point = TRACE_sched_switch,
                                                 .fn = switched };

static void read_here(void *arg UNUSED)
{
    counts_switched();
}

// Every CPU applies a change of `active`.
static void read_all_cpus(void)
{
    assert(irqs_enabled());
    smp_call_all(read_here, NULL);
}

static void activate(struct counts *c)
{
    mutex_assert_held(&streams_lock);
    if (!c->group)
        return;
    __atomic_fetch_or(&active, 1u << c->stream.slot, __ATOMIC_SEQ_CST);
    trace_listen(&switch_listener);
    read_all_cpus();
}

static void deactivate(struct counts *c)
{
    mutex_assert_held(&streams_lock);
    u32 bit = 1u << c->stream.slot;
    if (!(__atomic_fetch_and(&active, ~bit, __ATOMIC_SEQ_CST) & bit))
        return;
    read_all_cpus();
    trace_unlisten(&switch_listener);
}

// --- software events --------------------------------------------------------

static void add_statistics(struct task *t, void *arg)
{
    struct sums *sums = arg;
    spin_assert_held(&tasks_lock);
    struct resource_usage f;
    task_usage_locked(t, &f);
    sums->of[TASK_CLOCK] += f.user + f.kernel;
    sums->of[USER_TIME] += f.user;
    sums->of[KERNEL_TIME] += f.kernel;
    sums->of[CONTEXT_SWITCHES] += f.voluntary + f.forced;
    sums->of[CPU_MIGRATIONS] += f.migrations;
    sums->of[PAGE_FAULTS] += f.faults;
    sums->of[SYSTEM_CALLS] += syscall_task_total(t);
}

static struct sums sums_now(struct counts *c)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct sums sums = c->ended;
    stream_each_target(&c->stream, add_statistics, &sums);
    spin_unlock_irq(&tasks_lock, flags);
    return sums;
}

// --- start and stop ---------------------------------------------------------

static void start(struct stream *s)
{
    mutex_assert_held(&streams_lock);
    struct counts *c = counts_of(s);
    c->base = sums_now(c);
    core_clock_read(&c->clock_base);
    s->since_ns = clock_now_ns();
    activate(c);
}

// A counting stream is never paused.
static void stop(struct stream *s)
{
    deactivate(counts_of(s));
}

static void target_left(struct stream *s, struct task *t)
{
    spin_assert_held(&tasks_lock);
    counts_switched();
    add_statistics(t, &counts_of(s)->ended);
}

static void counts_end(struct stream *s);

static const struct stream_kind counting = {
    .max_streams = COUNTS_MAX,
    .start = start,
    .stop = stop,
    .end = counts_end,
    .target_left = target_left,
};

// --- begin and end ----------------------------------------------------------

static enum software_event software_event_named(const char *name)
{
    u32 i = 0;
    while (i < SOFTWARE_EVENTS && strcmp(software_events[i].name, name) != 0)
        i++;
    return i;
}

// Sets up one requested event. A hardware event that the counters can count is
// added to `group`, which has *count events.
static void take_event(const char *name, struct event *e,
                       struct pmu_event *group, u32 *count)
{
    assert(*count < SPROFILE_COUNTS_MAX);
    struct pmu_event *of_counters = &group[*count];
    *e = (struct event){ .software = software_event_named(name) };
    if (e->software < SOFTWARE_EVENTS) {
        e->kind = software_events[e->software].kind;
    } else if (pmu_event_parse(name, of_counters)) {
        e->kind = SPROFILE_COUNT_UNKNOWN;
        e->why_not = "no such event";
    } else {
        e->why_not = pmu_why_not();
        if (!e->why_not)
            e->why_not = pmu_event_why_not(of_counters);
        e->kind = e->why_not ? SPROFILE_COUNT_NOT : SPROFILE_COUNT_EVENTS;
        e->group_index = *count;
        *count += !e->why_not;
    }
}

static int take_events(struct counts *s, const struct sprofile_count_options *o)
{
    struct pmu_event group[SPROFILE_COUNTS_MAX];
    u32 count = 0;
    for (u32 i = 0; i < o->events; i++)
        take_event(o->event[i], &s->event[i], group, &count);
    s->events = o->events;
    return count ? pmu_counting_create(group, count, &s->group) : 0;
}

static int check_options(const struct sprofile_count_options *o)
{
    if (o->size != sizeof(*o) || o->flags & ~(u32)KNOWN_FLAGS || !o->events ||
        o->events > SPROFILE_COUNTS_MAX)
        return -EINVAL;
    for (u32 i = 0; i < o->events; i++) {
        if (!memchr(o->event[i], 0, sizeof(o->event[i])))
            return -EINVAL;
    }
    return 0;
}

static void free_counts(struct counts *c)
{
    if (c->group)
        pmu_counting_destroy(c->group);
    stream_release(&c->stream);
    kfree(c);
}

static int publish(struct stream *s)
{
    mutex_lock(&streams_lock);
    int err = stream_find_slot(s);
    if (!err)
        stream_publish(s);
    mutex_unlock(&streams_lock);
    return err;
}

int counts_begin(struct task *task, const struct sprofile_count_options *o,
                 struct stream **out)
{
    assert_may_sleep();
    assert(task);
    int err = check_options(o);
    if (err)
        return err;
    struct counts *c = kmalloc(sizeof(*c));
    if (!c)
        return -ENOMEM;
    memset(c, 0, sizeof(*c));
    core_clock_describe(&c->clock_base);
    stream_init(&c->stream, &counting, task, o->flags);
    err = take_events(c, o);
    if (!err)
        err = publish(&c->stream);
    if (err)
        free_counts(c);
    else
        *out = &c->stream;
    return err;
}

static void counts_end(struct stream *s)
{
    struct counts *c = counts_of(s);
    mutex_lock(&streams_lock);
    deactivate(c);
    stream_withdraw(s);
    mutex_unlock(&streams_lock);
    free_counts(c);
}

// --- reading ----------------------------------------------------------------

// In nanoseconds. The task clock is the sum of its converted parts, so that
// rounding does not make them differ.
static u64 time_of(enum software_event event, const struct sums *sums)
{
    if (event != TASK_CLOCK)
        return clock_tsc_to_ns(sums->of[event]);
    return time_of(USER_TIME, sums) + time_of(KERNEL_TIME, sums);
}

static void put_parts(const struct pmu_counting *group, u32 index,
                      struct sprofile_count *out)
{
    struct pmu_part parts[PMU_PARTS];
    pmu_counting_parts(group, index, parts);
    for (u32 i = 0; i < PMU_PARTS; i++)
        out->part[i] =
            (struct sprofile_part){ parts[i].value, parts[i].running };
}

static void put(const struct event *e, const struct sums *sums,
                const struct pmu_count *group, struct sprofile_count *out)
{
    assert(e->software <= SOFTWARE_EVENTS &&
           e->group_index < SPROFILE_COUNTS_MAX);
    *out = (struct sprofile_count){ .kind = e->kind };
    if (e->why_not) {
        strlcpy(out->why, e->why_not, sizeof(out->why));
    } else if (e->software == SOFTWARE_EVENTS) {
        const struct pmu_count *c = &group[e->group_index];
        out->value = c->value;
        out->enabled = c->enabled;
        out->running = c->running;
    } else {
        out->value = e->kind == SPROFILE_COUNT_NS ? time_of(e->software, sums)
                                                  : sums->of[e->software];
        out->enabled = out->running = sums->of[TASK_CLOCK];
    }
}

// CPUs may differ: the fewest.
static void put_counters(struct sprofile_counts *out)
{
    out->general = out->fixed = UINT32_MAX;
    for (u32 i = 0; i < cpu_count; i++) {
        struct pmu_info info;
        pmu_info(i, &info);
        out->general = MIN(out->general, info.general);
        out->fixed = MIN(out->fixed, info.fixed);
    }
}

// Of the time that is counted.
static void read_clock(const struct counts *c, struct strobe_core_clock *out)
{
    *out = c->clock_base;
    core_clock_read(out);
    out->tsc_error_ppm = clock_tsc_error_ppm();
    out->actual -= c->clock_base.actual;
    out->reference -= c->clock_base.reference;
    if (c->stream.wait_exec)
        out->actual = out->reference = 0;
}

void counts_read(struct stream *s, struct sprofile_counts *out)
{
    struct counts *c = counts_of(s);
    struct pmu_count group[SPROFILE_COUNTS_MAX];
    mutex_lock(&streams_lock);
    struct sums sums = s->wait_exec ? c->base : sums_now(c);
    for (u32 i = 0; i < SOFTWARE_EVENTS; i++)
        sums.of[i] -= c->base.of[i];
    if (c->group)
        pmu_counting_read(c->group, group);
    *out = (struct sprofile_counts){
        .events = c->events,
        .tasks = READ_ONCE(s->live),
        .tsc_hz = clock_tsc_hz(),
        .elapsed_ns = stream_elapsed_ns(s),
    };
    for (u32 i = 0; i < c->events; i++) {
        const struct event *e = &c->event[i];
        put(e, &sums, group, &out->count[i]);
        if (!e->why_not && e->software == SOFTWARE_EVENTS)
            put_parts(c->group, e->group_index, &out->count[i]);
    }
    if (c->group)
        put_counters(out);
    read_clock(c, &out->clock);
    mutex_unlock(&streams_lock);
}
