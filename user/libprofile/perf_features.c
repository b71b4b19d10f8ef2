#include "perf_features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/types.h"
#include "perf_topology.h"
#include "user/libstrobe/core_clock.h"

#define BLOB_FIRST 256u
#define STRING_ALIGN 8u

void blob_add(struct blob *b, const void *bytes, size_t size)
{
    if (size > b->room - b->size) {
        size_t room = MAX(b->room * 2, b->size + size + BLOB_FIRST);
        void *grown = realloc(b->bytes, room);
        b->failed |= !grown;
        if (!grown)
            return;
        b->bytes = grown;
        b->room = room;
    }
    if (size > 0)
        memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

void blob_free(struct blob *b)
{
    free(b->bytes);
    *b = (struct blob){ 0 };
}

void blob_add_word(struct blob *b, uint32_t word)
{
    blob_add(b, &word, sizeof(word));
}

void blob_add_string(struct blob *b, const char *text, uint32_t align)
{
    uint32_t size = strlen(text) + 1, padded = ALIGN_UP(size, align);
    blob_add_word(b, padded);
    blob_add(b, text, size);
    for (; size < padded; size++)
        blob_add(b, "", 1);
}

static void add_string(struct blob *b, const char *text)
{
    blob_add_string(b, text, STRING_ALIGN);
}

// --- the event --------------------------------------------------------------

// Names by their number in PERF_TYPE_HARDWARE.
static const char *const hardware[] = {
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
};

// perf's configs of events in PERF_TYPE_HW_CACHE: cache, operation (1: write),
// result (1: miss).
#define CACHE(cache, operation, result) \
    ((cache) | (operation) << 8 | (result) << 16)
static const struct {
    const char *name;
    uint32_t config;
} caches[] = {
    { "L1-dcache-loads", CACHE(0, 0, 0) },
    { "L1-dcache-load-misses", CACHE(0, 0, 1) },
    { "L1-dcache-stores", CACHE(0, 1, 0) },
    { "L1-icache-load-misses", CACHE(1, 0, 1) },
    { "LLC-loads", CACHE(2, 0, 0) },
    { "LLC-load-misses", CACHE(2, 0, 1) },
    { "dTLB-load-misses", CACHE(3, 0, 1) },
    { "dTLB-store-misses", CACHE(3, 1, 1) },
    { "iTLB-load-misses", CACHE(4, 0, 1) },
};

// Topdown slots, in perf an event of the CPU's PMU (event 0, unit mask 4).
#define SLOTS_CONFIG 0x400

// Parses rNNMM or rNNNMM, where NNN is the event and MM its mask. perf has the
// mask above the event's lower eight bits, and the upper four bits of an AMD
// event from bit 32 on.
static uint64_t raw_config(const char *event)
{
    uint32_t value = strtoul(event + 1, NULL, 16);
    uint64_t high = value >> 16;
    return high << 32 | (value & 0xff) << 8 | (value >> 8 & 0xff);
}

static bool is_named(const char *name, const char *event, size_t length)
{
    return strlen(name) == length && memcmp(name, event, length) == 0;
}

// `event`: the first `length` characters, without modes.
static void set_event(struct perf_attr *a, const char *event, size_t length)
{
    a->type = PERF_TYPE_RAW;
    a->config =
        is_named("slots", event, length) ? SLOTS_CONFIG : raw_config(event);
    for (uint32_t i = 0; i < sizeof(hardware) / sizeof(hardware[0]); i++) {
        if (is_named(hardware[i], event, length)) {
            a->type = PERF_TYPE_HARDWARE;
            a->config = i;
        }
    }
    for (uint32_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
        if (is_named(caches[i].name, event, length)) {
            a->type = PERF_TYPE_HW_CACHE;
            a->config = caches[i].config;
        }
    }
}

void perf_attr_make(struct perf_attr *a, const struct sprofile_options *asked,
                    const struct sprofile_info *info)
{
    bool chains = asked->flags & SPROFILE_O_STACKS;
    *a = (struct perf_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(*a),
        .config = PERF_SOFTWARE_CPU_CLOCK,
        .period = info->rate_hz != 0 ? info->rate_hz : info->period,
        .sample_type = PERF_SAMPLE_OURS | (chains ? PERF_SAMPLE_CALLCHAIN : 0),
        .read_format = PERF_READ_FORMAT_ID,
        .flags = PERF_ATTR_MMAP | PERF_ATTR_COMM | PERF_ATTR_TASK |
                 PERF_ATTR_SAMPLE_ID_ALL | PERF_ATTR_MMAP2 |
                 PERF_ATTR_COMM_EXEC |
                 (info->rate_hz != 0 ? PERF_ATTR_FREQ : 0),
    };
    if (info->event[0] == '\0')
        return;
    size_t length = strcspn(info->event, ":");
    bool user = strstr(info->event, ":u") != NULL;
    bool kernel = strstr(info->event, ":k") != NULL;
    if (user != kernel) // both or neither: count both modes
        a->flags |= user ? PERF_ATTR_EXCLUDE_KERNEL : PERF_ATTR_EXCLUDE_USER;
    set_event(a, info->event, length);
}

const char *perf_event_name(const struct sprofile_info *info)
{
    return info->event[0] != '\0' ? info->event : info->source;
}

// A single event sampled by time has perf's own name, so that recordings with
// different sources can be compared.
static void add_events(struct blob *b, const struct perf_event *events,
                       uint32_t count)
{
    blob_add_word(b, count);
    blob_add_word(b, sizeof(struct perf_attr));
    for (uint32_t i = 0; i < count; i++) {
        const struct sprofile_info *info = events[i].info;
        uint64_t id = PERF_EVENT_ID(i);
        struct perf_attr a;
        perf_attr_make(&a, events[i].asked, info);
        blob_add(b, &a, sizeof(a));
        blob_add_word(b, 1); // number of ids
        add_string(b, count == 1 && info->event[0] == '\0'
                          ? "cpu-clock"
                          : perf_event_name(info));
        blob_add(b, &id, sizeof(id));
    }
}

static void add_command(struct blob *b, char *const *command)
{
    uint32_t count = 0;
    while (command[count])
        count++;
    blob_add_word(b, count);
    for (uint32_t i = 0; i < count; i++)
        add_string(b, command[i]);
}

// The CPU's name and what its TSC counts, as far as they are known.
static void add_cpu(struct blob *b, const char *name,
                    const struct sprofile_info *info)
{
    char clock[CORE_CLOCK_SIZE], text[2 * CORE_CLOCK_SIZE];
    if (!name)
        name = "";
    core_clock_text(clock, &info->clock, info->tsc_hz);
    snprintf(text, sizeof(text), "%s%s%s", name,
             name[0] != '\0' && clock[0] != '\0' ? "; " : "", clock);
    add_string(b, text);
}

void perf_feature_make(struct blob *out, unsigned feature,
                       const struct perf_environment *environment,
                       const struct perf_event *events, uint32_t count)
{
    switch (feature) {
    case PERF_FEATURE_HOSTNAME:
        add_string(out, environment->host);
        break;
    case PERF_FEATURE_OS_RELEASE:
        add_string(out, environment->release);
        break;
    case PERF_FEATURE_VERSION:
        add_string(out, environment->version);
        break;
    case PERF_FEATURE_ARCH:
        add_string(out, environment->machine);
        break;
    case PERF_FEATURE_CPUS:
        blob_add_word(out, environment->cpus); // CPUs present
        blob_add_word(out, environment->cpus); // CPUs online
        break;
    case PERF_FEATURE_CPU:
        add_cpu(out, environment->cpu, events[0].info);
        break;
    case PERF_FEATURE_COMMAND:
        add_command(out, environment->command);
        break;
    case PERF_FEATURE_EVENTS:
        add_events(out, events, count);
        break;
    case PERF_FEATURE_TOPOLOGY:
        if (environment->topology)
            perf_topology_make(out, environment->topology, environment->cpus);
        break;
    case PERF_FEATURE_CLOCK:
        if (environment->date.version != 0)
            blob_add(out, &environment->date, sizeof(environment->date));
        break;
    case PERF_FEATURE_HYBRID:
        if (environment->topology)
            perf_hybrid_make(out, environment->topology, environment->cpus);
        break;
    }
}
