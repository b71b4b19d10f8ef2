// Sample source "trace": each event of a trace point, or one of N on average,
// is a sample. So call chains, tables, flame graphs and their differences show
// where page faults, wake-ups, system calls or waits for locks come from.
//
// An event is named GROUP/NAME, as in include/strobe/points.def, or
// GROUP/NAME:FIELD: then the units of the field are counted, not the events,
// for example the cycles of lock/contended. A sample stands for all N of them
// that an event completes.
//
// A sample is taken in the point's listener, with interrupts off, as by a
// maskable interrupt. What is sampled is the function with the point, or its
// caller (unwind_caller); of exceptions and system calls the code that caused
// them. The N of each CPU are counted on that CPU, whatever it runs.
//
// Each instance has its point while it runs. `start` and `stop` are called
// under streams_lock; a CPU's part is written by its own listener alone.

#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/regs.h"
#include "arch/unwind.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/devfs.h"
#include "kernel/profile/session_private.h"
#include "kernel/trace/point.h"
#include "lib/random_distance.h"
#include "lib/string.h"

// --- names ------------------------------------------------------------------

static const char *const point_names[TRACE_POINTS] = {
#define POINT(group, name, fields, when) #group "/" #name,
#include <strobe/points.def>
#undef POINT
};

// The fields of each point, in the order of its record.
struct field {
    const char *name;
    u8 size;
};
#define FIELD(kind, name) { #name, sizeof(kind) },
#define U8(name) FIELD(u8, name)
#define U16(name) FIELD(u16, name)
#define U32(name) FIELD(u32, name)
#define U64(name) FIELD(u64, name)
#define POINT(group, name, fields, when) \
    static const struct field fields_of_##group##_##name[] = { fields };
#include <strobe/points.def>
#undef POINT

static const struct {
    const struct field *list;
    u32 count;
} fields_of[TRACE_POINTS] = {
#define POINT(group, name, fields, when) \
    { fields_of_##group##_##name, ARRAY_SIZE(fields_of_##group##_##name) },
#include <strobe/points.def>
#undef POINT
};

// Points in the handling of exceptions and system calls.
static const bool of_interrupted[TRACE_POINTS] = {
    [TRACE_syscall_enter] = true,  [TRACE_syscall_exit] = true,
    [TRACE_trap_exception] = true, [TRACE_page_fault] = true,
    [TRACE_page_fault_end] = true,
};

// What an instance samples. Without a field each event is a unit.
struct choice {
    enum trace_number point;
    u32 offset, size; // of the field whose units are counted; size 0: none
};

static bool choose_field(struct choice *c, const char *name)
{
    c->offset = 0;
    for (u32 i = 0; i < fields_of[c->point].count; i++) {
        const struct field *f = &fields_of[c->point].list[i];
        c->size = f->size;
        if (!strcmp(f->name, name))
            return true;
        c->offset += f->size;
    }
    return false;
}

// False: there is no such event.
static bool choose(struct choice *c, const char *event)
{
    const char *colon = strchr(event, ':');
    size_t len = colon ? (size_t)(colon - event) : strlen(event);
    for (u32 i = 0; i < TRACE_POINTS; i++) {
        if (strlen(point_names[i]) != len || memcmp(point_names[i], event, len))
            continue;
        *c = (struct choice){ .point = i };
        if (i == TRACE_profile_sample || i == TRACE_sched_pmc)
            return false; // it has no listeners
        return !colon || choose_field(c, colon + 1);
    }
    return false;
}

bool point_event_valid(const char *event)
{
    struct choice c;
    return choose(&c, event);
}

// --- samples ----------------------------------------------------------------

struct point_source {
    struct sample_source source;
    struct trace_listener listener;
    struct choice choice;
    u32 period;
    u32 left[CPU_MAX]; // units until the next sample
    u32 seed[CPU_MAX]; // of their numbers; 0: each is `period`
};

static struct counter cycles[CPU_MAX];

u64 point_cycles(u32 cpu)
{
    return counter_read(&cycles[cpu]);
}

static u64 units_of(const struct choice *c, const void *record)
{
    u64 value = 0;
    if (!c->size)
        return 1;
    memcpy(&value, (const u8 *)record + c->offset, c->size);
    return value;
}

static u32 draw(struct point_source *s, u32 cpu)
{
    u32 *seed = &s->seed[cpu];
    return *seed ? (u32)random_count(seed, s->period) : s->period;
}

// The units of the periods that end within the next `units`. Of a number of
// units of several periods one ends in each, as on average.
static u64 complete(struct point_source *s, u64 units)
{
    u32 cpu = this_cpu()->id, rest = (u32)(units % s->period);
    u64 periods = units / s->period, left = s->left[cpu];
    for (; rest >= left; left += draw(s, cpu))
        periods++;
    s->left[cpu] = (u32)(left - rest); // a drawn distance at most
    return periods * s->period;
}

static NOINLINE void take(struct point_source *s, u64 units,
                          const void *own_frame)
{
    struct trapframe tf;
    u32 cpu = this_cpu()->id;
    u64 began = rdtsc();
    if (of_interrupted[s->choice.point])
        unwind_interrupted(&tf, own_frame);
    else
        unwind_caller(&tf, own_frame);
    struct sample_hit hit = { &tf, 1, complete(s, units), began };
    sample_take_point(&s->source, &hit, (u32)counter_read(&cycles[cpu]));
    counter_add(&cycles[cpu], (u32)(rdtsc() - began));
}

// If each unit is sampled, so is each event, also one of no units.
static ALWAYS_INLINE void passed(struct point_source *s, const void *record,
                                 const void *own_frame)
{
    u32 *left = &s->left[this_cpu_read(id)];
    u64 units = units_of(&s->choice, record);
    if (units < *left && s->period > 1)
        *left -= (u32)units;
    else
        take(s, units, own_frame);
}

// --- instances --------------------------------------------------------------

#define INSTANCES 8
#define PERIOD_MAX (UINT32_MAX / RANDOM_MOST)
static struct point_source instances[INSTANCES];

static struct point_source *mine(const struct sample_source *s)
{
    return container_of(s, struct point_source, source);
}

static int point_start(const struct sample_source *source,
                       struct sample_rate *rate)
{
    struct point_source *s = mine(source);
    if (!choose(&s->choice, rate->event) || rate->period > PERIOD_MAX)
        return -EINVAL;
    s->period = rate->period ? (u32)rate->period : 1;
    rate->hz = 0;
    rate->period = s->period;
    rate->random &= s->period > 1;
    for (u32 i = 0; i < cpu_count; i++) {
        random_bytes(&s->seed[i], sizeof(s->seed[i]));
        s->seed[i] = rate->random ? s->seed[i] | 1 : 0;
        s->left[i] = draw(s, i);
    }
    s->listener.point = s->choice.point;
    trace_listen(&s->listener);
    return 0;
}

static void point_stop(const struct sample_source *source)
{
    trace_unlisten(&mine(source)->listener);
}

static const char *point_why_not(const struct sample_source *s UNUSED)
{
    return NULL;
}

#define LISTENER(n)                                                \
    static KEEPS_FRAME void at_point_##n(const void *record)       \
    {                                                              \
        passed(&instances[n], record, __builtin_frame_address(0)); \
    }
LISTENER(0)
LISTENER(1)
LISTENER(2)
LISTENER(3)
LISTENER(4)
LISTENER(5)
LISTENER(6)
LISTENER(7)

#define INSTANCE(n, after)                         \
    {                                              \
        .source = { .name = SPROFILE_POINT_SOURCE, \
                    .min_hz = 1,                   \
                    .max_hz = 1000,                \
                    .point = true,                 \
                    .counts = "page/fault",        \
                    .next = after,                 \
                    .why_not = point_why_not,      \
                    .start = point_start,          \
                    .stop = point_stop },          \
        .listener = { .fn = at_point_##n },        \
    }
#define INSTANCE_BEFORE(n, m) INSTANCE(n, &instances[m].source)

static struct point_source instances[INSTANCES] = {
    INSTANCE_BEFORE(0, 1), INSTANCE_BEFORE(1, 2), INSTANCE_BEFORE(2, 3),
    INSTANCE_BEFORE(3, 4), INSTANCE_BEFORE(4, 5), INSTANCE_BEFORE(5, 6),
    INSTANCE_BEFORE(6, 7), INSTANCE(7, NULL),
};
LINKER_SET_ADD_PART(sample_sources, points, instances[0].source);
