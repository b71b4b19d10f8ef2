// sched/pmc: a listener of sched/switch reads the counters, which run on all
// CPUs as long as the trace exists, and records the difference.
//
// `last` of a CPU is that CPU's, with interrupts off. The counts are read twice
// a minute, too, so that no counter wraps unseen on a CPU without switches.
#include "kernel/profile/trace_pmc.h"

#include "arch/cpu.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/time/callout.h"
#include "kernel/trace/emit.h"
#include "kernel/trace/point.h"
#include "lib/string.h"

#define REFRESH_NS (30 * NSEC_PER_SEC)

// --- the CPUs' counters -----------------------------------------------------

static struct pmu_counting *group; // while a trace has it
static bool inexact;               // some CPU lacks a counter; marked

static void in_here(void *arg UNUSED)
{
    pmu_counting_in(group);
    if (!pmu_counting_is_exact(group))
        WRITE_ONCE(inexact, true);
}

static void out_here(void *arg UNUSED)
{
    pmu_counting_out(group);
}

static void end_group(void)
{
    smp_call_all(out_here, NULL);
    pmu_counting_destroy(group);
    group = NULL;
}

static int begin_group(const struct pmu_event events[TRACE_COUNTERS])
{
    if (pmu_why_not())
        return -ENODEV;
    for (u32 i = 0; i < TRACE_COUNTERS; i++) {
        if (pmu_event_why_not(&events[i]))
            return -EOPNOTSUPP;
    }
    int err = pmu_counting_create(events, TRACE_COUNTERS, &group);
    if (err)
        return err;
    inexact = false;
    smp_call_all(in_here, NULL);
    if (!READ_ONCE(inexact))
        return 0;
    end_group();
    return -EBUSY;
}

static void read_group(u64 counts[TRACE_COUNTERS])
{
    struct pmu_count all[TRACE_COUNTERS];
    pmu_counting_read_here(group, all);
    for (u32 i = 0; i < TRACE_COUNTERS; i++)
        counts[i] = all[i].value;
}

static const struct trace_counters cpu_counters = { begin_group, end_group,
                                                    read_group };
const struct trace_counters *trace_counters = &cpu_counters;

// --- events -----------------------------------------------------------------

static u32 used; // by a trace; atomic
static u64 last[CPU_MAX][TRACE_COUNTERS];
static struct callout refresh_callout;

static void switched(const void *record)
{
    const struct trace_sched_switch *s = record;
    u64 now[TRACE_COUNTERS], *before = last[this_cpu()->id];
    trace_counters->read(now);
    struct trace_sched_pmc event = { .thread = s->prev,
                                     .first = now[0] - before[0],
                                     .second = now[1] - before[1] };
    memcpy(before, now, sizeof(now));
    trace_record_pmc(&event);
}

static struct trace_listener listener = { .point = TRACE_sched_switch,
                                          .fn = switched };

static void read_here(void *arg UNUSED)
{
    u64 now[TRACE_COUNTERS];
    trace_counters->read(now);
}

static void refresh(struct callout *c)
{
    smp_call_all(read_here, NULL);
    callout_set(c, clock_now_ns() + REFRESH_NS);
}

static int parse(const struct trace_options *o, struct pmu_event *events)
{
    for (u32 i = 0; i < TRACE_COUNTERS; i++) {
        if (!memchr(o->counters[i], 0, TRACE_COUNTER_NAME))
            return -EINVAL;
        if (pmu_event_parse(o->counters[i], &events[i]))
            return -ENOENT;
    }
    return 0;
}

int trace_pmc_begin(const struct trace_options *o)
{
    struct pmu_event events[TRACE_COUNTERS];
    int err = parse(o, events);
    if (err)
        return err;
    if (__atomic_exchange_n(&used, 1, __ATOMIC_ACQUIRE))
        return -EBUSY;
    err = trace_counters->begin(events);
    if (err) {
        __atomic_store_n(&used, 0, __ATOMIC_RELEASE);
        return err;
    }
    memset(last, 0, sizeof(last));
    callout_init(&refresh_callout, refresh, CALLOUT_THREAD);
    callout_set(&refresh_callout, clock_now_ns() + REFRESH_NS);
    trace_listen(&listener);
    return 0;
}

void trace_pmc_end(void)
{
    trace_unlisten(&listener);
    callout_drain(&refresh_callout);
    trace_counters->end();
    __atomic_store_n(&used, 0, __ATOMIC_RELEASE);
}
