#include "events.h"

#include "header.h"
#include "sources.h"
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

// --- names ------------------------------------------------------------------

static bool is_named(const struct event_names *n, const char *name)
{
    for (uint32_t i = 0; i < n->count; i++) {
        if (strcmp(n->name[i], name) == 0)
            return true;
    }
    return false;
}

static const char *add_name(struct event_names *n, const char *at, int length,
                            size_t room)
{
    static char problem[SPROFILE_EVENT_NAME + 16];
    char name[SPROFILE_EVENT_NAME] = "";

    if ((size_t)length >= room)
        return "a name is too long";
    memcpy(name, at, length);
    if (is_named(n, name)) {
        snprintf(problem, sizeof(problem), "%s is given twice", name);
        return problem;
    }
    if (n->count == EVENTS_MAX) {
        snprintf(problem, sizeof(problem), "%d at once at most", EVENTS_MAX);
        return problem;
    }
    memcpy(n->name[n->count++], name, sizeof(name));
    return NULL;
}

static const char *add_names(struct event_names *n, const char *list,
                             size_t room)
{
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        const char *problem =
            length == 0 ? "a name is missing" : add_name(n, at, length, room);
        if (problem)
            return problem;
        at += length;
        if (*at == '\0')
            return NULL;
    }
}

const char *sampling_take_sources(void *names, char *list)
{
    return add_names(names, list, SPROFILE_SOURCE_NAME);
}

const char *sampling_take_events(void *names, char *list)
{
    return add_names(names, list, SPROFILE_EVENT_NAME);
}

// --- selection --------------------------------------------------------------

// "@group/name" is a trace point's event, which has its own source.
static bool choose_point(struct sprofile_options *o, const char *name,
                         const struct event_names *sources)
{
    if (name[1] == '\0')
        complain("-e @: a trace point's name is missing (trace list)");
    else if (sources->count > 0)
        complain("-e %s: a trace point is its own source, without -s", name);
    else if (o->rate_hz != 0)
        complain("-e %s: a sample is each event, or one of N (-c N); it has "
                 "no rate (-F)",
                 name);
    else {
        strcpy(o->source, SPROFILE_POINT_SOURCE);
        strcpy(o->event, name + 1);
        return true;
    }
    return false;
}

// If there are several events, chooses the counting source explicitly: one that
// the kernel chose in its place would count none of them.
static bool choose_event(struct events *e, uint32_t i,
                         const struct event_names *sources,
                         const struct event_names *events)
{
    struct sprofile_options *o = &e->list[i].asked;
    const char *name = events->name[events->count > 1 ? i : 0];

    if (events->count == 0)
        return true;
    if (name[0] == '@')
        return choose_point(o, name, sources);
    strcpy(o->event, name);
    if (events->count > 1 && sources->count == 0)
        counting_source(o->source);
    return true;
}

bool events_choose(struct events *e, const struct sprofile_options *common,
                   const struct event_names *sources,
                   const struct event_names *events)
{
    if (sources->count > 1 && events->count > 1) {
        complain("several sources (-s) or several events (-e) of one source, "
                 "but not both");
        return false;
    }
    e->count = 1;
    if (sources->count > 1 || events->count > 1)
        e->count = sources->count > 1 ? sources->count : events->count;
    for (uint32_t i = 0; i < e->count; i++) {
        struct sprofile_options *o = &e->list[i].asked;
        *o = *common;
        if (sources->count > 0)
            strcpy(o->source, sources->name[sources->count > 1 ? i : 0]);
        if (!choose_event(e, i, sources, events))
            return false;
    }
    return true;
}

#define RATE_ASSUMED 1000
#define SAMPLE_BYTES 40
#define STACK_SAMPLE_BYTES 200 // for about 30 frames
#define BESIDE_STACK_BYTES 300
#define RING_MAX (16 << 20)

uint32_t events_ring_bytes(const struct sprofile_options *o, uint32_t seconds)
{
    uint32_t hz = o->rate_hz != 0 ? o->rate_hz : RATE_ASSUMED;
    uint32_t a_second =
        hz * (o->flags & SPROFILE_O_DEEP
                  ? sprofile_stack_bytes(o) + BESIDE_STACK_BYTES
              : o->flags & SPROFILE_O_STACKS ? STACK_SAMPLE_BYTES
                                             : SAMPLE_BYTES);
    uint64_t bytes = (uint64_t)seconds * a_second;

    if (bytes <= RING_MAX)
        return bytes;
    complain("-m %u: at this rate the buffers hold %u s at most", seconds,
             RING_MAX / a_second);
    return RING_MAX;
}

// --- sessions ---------------------------------------------------------------

static void begin(struct event *e, uint32_t task)
{
    char why[SOURCE_PROBLEM_SIZE];
    int done = task != 0 ? profile_begin(&e->session, task, &e->asked)
                         : profile_begin_system(&e->session, &e->asked);

    if (done == 0 && profile_info(&e->session, &e->info) == 0)
        return;
    sources_problem(why, sizeof(why), &e->asked, errno);
    if (task != 0)
        fail(1, "task %u: %s", task, why);
    fail(1, "%s", why);
}

void events_begin(struct events *e, uint32_t task, uint32_t flags)
{
    for (uint32_t i = 0; i < e->count; i++) {
        struct event *event = &e->list[i];
        if (samples_init(&event->samples, program_read) < 0)
            fail(1, "not enough memory");
        event->samples.images.open = program_open_running;
        event->samples.vdso = getauxval(AT_SYSINFO_EHDR);
        event->asked.flags |= flags;
        begin(event, task);
        if (i > 0 && event->info.event[0] == '\0' &&
            strcmp(event->info.source, e->list[0].info.source) == 0)
            fail(1, "-e: %s counts no events", event->info.source);
    }
}

void events_free(struct events *e)
{
    for (uint32_t i = 0; i < e->count; i++)
        samples_free(&e->list[i].samples);
}

int events_status(const struct events *e, int status)
{
    for (uint32_t i = 0; i < e->count; i++) {
        const struct sprofile_info *info = &e->list[i].info;
        if (!header_starved(info))
            continue;
        complain("%s: %llu samples expected, %llu taken: choose another source "
                 "(-s; profile --list)",
                 info->source, (unsigned long long)info->expected,
                 (unsigned long long)info->taken);
        status = status != 0 ? status : 1;
    }
    return status;
}

const char *event_name(const struct event *e)
{
    return perf_event_name(&e->info);
}

// --- options ----------------------------------------------------------------

const char *sampling_take_random(void *options, char *none)
{
    struct sprofile_options *o = options;

    (void)none;
    o->flags |= SPROFILE_O_RANDOM | SPROFILE_O_NO_FIXED;
    return NULL;
}

const char *sampling_take_fixed(void *options, char *none)
{
    struct sprofile_options *o = options;

    (void)none;
    o->flags &= ~(uint32_t)(SPROFILE_O_RANDOM | SPROFILE_O_NO_FIXED);
    return NULL;
}

static const char *take_stacks(struct sprofile_options *o, const char *size)
{
    static char problem[64];
    uint32_t bytes = 0;

    snprintf(problem, sizeof(problem), "SIZE is not a number from %d to %d",
             SPROFILE_DEEP_LEAST, SPROFILE_DEEP_MOST);
    if (*size == ',' &&
        !decimal(size + 1, SPROFILE_DEEP_LEAST, SPROFILE_DEEP_MOST, &bytes))
        return problem;
    o->flags = (o->flags & ~SPROFILE_O_LBR) | SPROFILE_O_DEEP;
    o->stack_bytes = (bytes + 7) & ~7u; // what the kernel takes
    return NULL;
}

const char *sampling_take_calls(void *options, char *how)
{
    struct sprofile_options *o = options;

    o->flags |= SPROFILE_O_STACKS;
    if (!how)
        return NULL;
    if (strncmp(how, "dwarf", 5) == 0 && (how[5] == '\0' || how[5] == ','))
        return take_stacks(o, how + 5);
    if (strcmp(how, "lbr") != 0)
        return "not dwarf, dwarf,SIZE or lbr";
    o->flags = (o->flags & ~SPROFILE_O_DEEP) | SPROFILE_O_LBR;
    o->stack_bytes = 0;
    return NULL;
}
