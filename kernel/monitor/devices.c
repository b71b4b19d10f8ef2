// system.clock, .profile, .usb, .disks and .net: the time sources and
// timers of the machine, its sampling sources and performance counters, what is
// sampled, its USB devices, its network card.

#include "arch/cpu.h"
#include "arch/lbr.h"
#include "arch/pmu.h"
#include "kernel/base/providers.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/profile/sample.h"
#include "lib/string.h"

// A node whose records are those that `each` shows, one by one.
#define MAKE_EACH(name, type, each)                            \
    static void name##_put(const struct type *from, void *out) \
    {                                                          \
        struct type *record = chain_add(out);                  \
        if (record)                                            \
            *record = *from;                                   \
    }                                                          \
    static int name(struct chain *out, u32 number UNUSED)      \
    {                                                          \
        each(name##_put, out);                                 \
        return 0;                                              \
    }

MAKE_EACH(make_clock, sysinfo_clock, clock_devices_each)
MAKE_EACH(make_readings, sysinfo_reading, clock_readings_each)

static int make_sources(struct chain *out, u32 number UNUSED)
{
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        const char *why = source_why_not(*s);
        struct sysinfo_sampler *record = chain_add(out);
        if (!record)
            break;
        strlcpy(record->name, (*s)->name, sizeof(record->name));
        record->rank = (*s)->rank;
        record->usable = !why;
        record->min_rate = (*s)->min_hz;
        record->max_rate = (*s)->max_hz;
        record->nmi = (*s)->nmi;
        record->counts = (*s)->counts != NULL;
        if (why)
            strlcpy(record->why, why, sizeof(record->why));
    }
    return 0;
}

static int make_counters(struct chain *out, u32 number UNUSED)
{
    for (u32 i = 0; i < cpu_count; i++) {
        struct pmu_info info;
        struct sysinfo_counters *record = chain_add(out);
        if (!record)
            break;
        pmu_info(i, &info);
        record->cpu = i;
        record->general = info.general;
        record->fixed = info.fixed;
        record->width = info.width;
        record->taken = info.taken;
        record->events = info.events;
        const char *why = info.why_not ? info.why_not : info.no_interrupts;
        if (why)
            strlcpy(record->why, why, sizeof(record->why));
        if (info.why_not)
            continue;
        strlcpy(record->interface, info.interface, sizeof(record->interface));
        strlcpy(record->model, info.model, sizeof(record->model));
    }
    return 0;
}

static int make_events(struct chain *out, u32 number UNUSED)
{
    const char *none = pmu_why_not();
    struct pmu_event e = { .user = true, .kernel = true };
    for (; e.id < PMU_RAW; e.id++) {
        const char *why = none ? none : pmu_event_why_not(&e);
        struct sysinfo_event *record = chain_add(out);
        if (!record)
            break;
        strlcpy(record->name, pmu_event_name(e.id), sizeof(record->name));
        record->usable = !why;
        if (why)
            strlcpy(record->why, why, sizeof(record->why));
    }
    return 0;
}

static int make_callers(struct chain *out, u32 number UNUSED)
{
    const char *why = lbr_why_not();
    struct sysinfo_callers *record = chain_add(out);
    if (!record)
        return 0;
    record->usable = !why;
    record->depth = why ? 0 : lbr_depth();
    if (why)
        strlcpy(record->why, why, sizeof(record->why));
    return 0;
}

MAKE_EACH(make_sessions, sysinfo_session, sessions_each)
MAKE_EACH(make_traces, sysinfo_trace, traces_each)

static int make_sampling(struct chain *out, u32 number UNUSED)
{
    struct sysinfo_sampling *record = chain_add(out);
    if (record)
        session_totals(record);
    return 0;
}

MAKE_EACH(make_usb, sysinfo_usb, usb_devices_each)
MAKE_EACH(make_disks, sysinfo_disk, disks_each)

static int make_net(struct chain *out, u32 number UNUSED)
{
    struct sysinfo_net all = { 0 };
    struct sysinfo_net *record = net_report(&all) ? chain_add(out) : NULL;
    if (record)
        *record = all;
    return 0;
}

SYSINFO_NODE(disks, .path = "system.disks",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_DISK),
             .make = make_disks);
SYSINFO_NODE(net, .path = "system.net",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_NET),
             .make = make_net);
SYSINFO_NODE(usb, .path = "system.usb",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_USB),
             .make = make_usb);
SYSINFO_NODE(clock, .path = "system.clock",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_CLOCK),
             .make = make_clock);
SYSINFO_NODE(readings, .path = "system.clock.readings",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_READING),
             .make = make_readings);
SYSINFO_NODE(sources, .path = "system.profile.sources",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_SAMPLER),
             .make = make_sources);
SYSINFO_NODE(counters, .path = "system.profile.counters",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_COUNTERS),
             .make = make_counters);
SYSINFO_NODE(events, .path = "system.profile.events",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_EVENT),
             .make = make_events);
SYSINFO_NODE(callers, .path = "system.profile.callers",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_CALLERS),
             .make = make_callers);
SYSINFO_NODE(sessions, .path = "system.profile.sessions",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_SESSION),
             .make = make_sessions);
SYSINFO_NODE(traces, .path = "system.profile.traces",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_TRACE),
             .make = make_traces);
SYSINFO_NODE(sampling, .path = "system.profile.totals",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_SAMPLING),
             .make = make_sampling);
