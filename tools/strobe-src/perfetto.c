// A trace for Perfetto (github.com/google/perfetto, protos/perfetto/trace):
// each sample at its time on the track of its thread, with its callers.
// Programs, functions and chains are written once, before the samples.
#include "export.h"
#include "perfetto_packet.h"
#include "places.h"

#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 512
#define ADDRESSES (1ull << 32)

// Field numbers of the messages.
enum { TREE_PROCESS = 1, TREE_THREAD };
enum { PROCESS_ID = 1, PROCESS_COMMAND = 3 };
enum { THREAD_ID = 1, THREAD_NAME, THREAD_PROCESS };
enum {
    INTERNED_FUNCTION = 5,
    INTERNED_FRAME,
    INTERNED_CALLSTACK,
    INTERNED_BUILD_ID = 16,
    INTERNED_PATH,
    INTERNED_MAPPING = 19,
};
enum { STRING_ID = 1, STRING_TEXT };
enum { MAPPING_ID = 1, MAPPING_BUILD_ID, MAPPING_END = 5, MAPPING_PATH = 7 };
enum { FRAME_ID = 1, FRAME_FUNCTION, FRAME_MAPPING, FRAME_ADDRESS };
enum { CALLSTACK_ID = 1, CALLSTACK_FRAME };
enum {
    SAMPLE_CPU = 1,
    SAMPLE_PROCESS,
    SAMPLE_THREAD,
    SAMPLE_CALLSTACK,
    SAMPLE_MODE,
    SAMPLE_COUNT,
};
enum { IN_KERNEL = 1, IN_USER };

// Ids begin at 1. They number images, rows of the view, places, and the
// callstacks of samples, by chain node. Idle has one more row and place, and
// its callstacks follow those of all nodes.
struct perfetto {
    struct export *e;
    struct places places;
    struct message packet, part, inner;
    bool *written;     // callstacks already written
    uint64_t *periods; // of each CPU's samples so far
};

static const struct chains *chains_of(const struct perfetto *p)
{
    return &p->e->profile->samples.chains;
}

static void put_packet(struct perfetto *p)
{
    perfetto_put(p->e->out, &p->packet);
}

static void put_string(struct perfetto *p, uint32_t field, uint64_t id,
                       const char *text)
{
    char safe[NAME_SIZE];

    snprintf(safe, sizeof(safe), "%s", text);
    printable(safe);
    message_number(&p->inner, STRING_ID, id);
    message_bytes(&p->inner, STRING_TEXT, safe, strlen(safe));
    message_add(&p->part, field, &p->inner);
}

// --- interned data ----------------------------------------------------------

static void put_mappings(struct perfetto *p)
{
    const struct images *images = &p->e->profile->samples.images;
    uint32_t count = profile_images(p->e->profile);

    for (uint32_t i = 0; i < count; i++) {
        const struct image *m = &images->list[i];
        put_string(p, INTERNED_PATH, i + 1, m->path);
        message_number(&p->inner, STRING_ID, i + 1);
        message_bytes(&p->inner, STRING_TEXT, m->build_id, m->build_id_size);
        message_add(&p->part, INTERNED_BUILD_ID, &p->inner);
        message_number(&p->inner, MAPPING_ID, i + 1);
        message_number(&p->inner, MAPPING_BUILD_ID, i + 1);
        message_number(&p->inner, MAPPING_END, ADDRESSES);
        message_number(&p->inner, MAPPING_PATH, i + 1);
        message_add(&p->part, INTERNED_MAPPING, &p->inner);
    }
}

static void put_functions(struct perfetto *p)
{
    char name[NAME_SIZE];

    for (uint32_t row = 0; row < p->e->view->count; row++) {
        frame_name(name, sizeof(name), p->e, row);
        put_string(p, INTERNED_FUNCTION, row + 1, name);
    }
    put_string(p, INTERNED_FUNCTION, p->e->view->count + 1, IDLE_FRAME);
}

static void put_frame(struct perfetto *p, uint64_t id, uint64_t function,
                      struct place place)
{
    const struct inlined *inlined =
        inlines_find(&p->e->profile->inlines, place);

    if (inlined)
        place = inlined->place;
    message_number(&p->inner, FRAME_ID, id);
    message_number(&p->inner, FRAME_FUNCTION, function);
    message_number(&p->inner, FRAME_MAPPING, place.image + 1);
    message_number(&p->inner, FRAME_ADDRESS, place.address);
    message_add(&p->part, INTERNED_FRAME, &p->inner);
}

static void put_frames(struct perfetto *p)
{
    const struct chains *c = chains_of(p);
    uint32_t last = 0;
    uint32_t *row_of = calloc(p->places.count + 1, sizeof(*row_of));

    if (!row_of)
        fail(1, "not enough memory for the export");
    for (uint32_t n = 1; n < c->count; n++)
        row_of[places_number(&p->places, n) - 1] = p->e->view->row_of[n];
    for (; last < p->places.count; last++)
        put_frame(p, last + 1, row_of[last] + 1, p->places.list[last]);
    put_frame(p, last + 1, p->e->view->count + 1,
              (struct place){ IMAGE_KERNEL, 0 });
    free(row_of);
}

// Appends the frames of a chain, the outermost first.
static void put_callers(struct perfetto *p, uint32_t chain)
{
    if (chain == CHAIN_ROOT)
        return;
    put_callers(p, chains_of(p)->nodes[chain].parent); // depth: chain length
    message_number(&p->inner, CALLSTACK_FRAME,
                   places_number(&p->places, chain));
}

static uint32_t callstack_of(const struct perfetto *p,
                             const struct timed_sample *s)
{
    return s->chain + (s->mode == MODE_IDLE ? chains_of(p)->count : 0);
}

static void put_callstacks(struct perfetto *p)
{
    const struct profile *profile = p->e->profile;

    for (size_t i = 0; i < profile->count; i++) {
        const struct timed_sample *s = &profile->list[i];
        uint32_t stack = callstack_of(p, s);
        if (p->written[stack])
            continue;
        p->written[stack] = true;
        message_number(&p->inner, CALLSTACK_ID, stack + 1);
        if (s->mode == MODE_IDLE)
            message_number(&p->inner, CALLSTACK_FRAME, p->places.count + 1);
        put_callers(p, s->chain);
        message_add(&p->part, INTERNED_CALLSTACK, &p->inner);
    }
}

// --- tasks and threads ------------------------------------------------------

static bool wanted(const struct perfetto *p, const struct timed_sample *s)
{
    struct sample_count c = {
        .task = s->task, .thread = s->thread, .cpu = s->cpu, .mode = s->mode
    };

    return view_passes(&c, p->e->filter);
}

static int compare(const void *a, const void *b)
{
    const struct timed_sample *const *x = a, *const *y = b;

    if ((*x)->task != (*y)->task)
        return (*x)->task < (*y)->task ? -1 : 1;
    if ((*x)->thread != (*y)->thread)
        return (*x)->thread < (*y)->thread ? -1 : 1;
    return (*x)->time > (*y)->time ? -1 : (*x)->time < (*y)->time;
}

// Its own one, or that of its task's program.
static void put_thread_name(struct perfetto *p, const struct timed_sample *s,
                            const char *program)
{
    char name[NAME_SIZE];

    snprintf(name, sizeof(name), "%s",
             s->thread == s->task ? program
                                  : samples_thread_name(&p->e->profile->samples,
                                                        s->task, s->thread));
    printable(name);
    message_bytes(&p->inner, THREAD_NAME, name, strlen(name));
}

// Writes each task and thread once, named after its last program.
static void put_tree(struct perfetto *p)
{
    const struct profile *profile = p->e->profile;
    const struct timed_sample **list =
        calloc(profile->count + 1, sizeof(*list));
    size_t count = 0;

    if (!list)
        fail(1, "not enough memory for the export");
    for (size_t i = 0; i < profile->count; i++) {
        if (profile->list[i].mode != MODE_IDLE && wanted(p, &profile->list[i]))
            list[count++] = &profile->list[i];
    }
    qsort(list, count, sizeof(*list), compare);
    for (size_t i = 0; i < count; i++) {
        const struct timed_sample *s = list[i], *last = i > 0 ? list[i - 1] : s;
        char name[NAME_SIZE];
        snprintf(name, sizeof(name), "%s",
                 profile_program_name(profile, s->task, s->program));
        printable(name);
        if (i == 0 || s->task != last->task) {
            message_number(&p->inner, PROCESS_ID, s->task);
            message_bytes(&p->inner, PROCESS_COMMAND, name, strlen(name));
            message_add(&p->part, TREE_PROCESS, &p->inner);
        }
        if (i == 0 || s->task != last->task || s->thread != last->thread) {
            message_number(&p->inner, THREAD_ID, s->thread);
            message_number(&p->inner, THREAD_PROCESS, s->task);
            put_thread_name(p, s, name);
            message_add(&p->part, TREE_THREAD, &p->inner);
        }
    }
    free(list);
    message_add(&p->packet, PACKET_PROCESS_TREE, &p->part);
}

// The weight of a sample is the growth of its CPU's count, as perf's timebase.
static void put_sample(struct perfetto *p, const struct timed_sample *s)
{
    bool idle = s->mode == MODE_IDLE;

    p->periods[s->cpu] += s->period;
    message_number(&p->part, SAMPLE_CPU, s->cpu);
    message_number(&p->part, SAMPLE_PROCESS, idle ? 0 : s->task);
    message_number(&p->part, SAMPLE_THREAD, idle ? 0 : s->thread);
    message_number(&p->part, SAMPLE_CALLSTACK, callstack_of(p, s) + 1);
    message_number(&p->part, SAMPLE_MODE,
                   s->mode == MODE_USER ? IN_USER : IN_KERNEL);
    message_number(&p->part, SAMPLE_COUNT, p->periods[s->cpu]);
    message_number(&p->packet, PACKET_TIMESTAMP, s->time);
    message_number(&p->packet, PACKET_FLAGS, FLAG_NEEDS_INTERNED);
    message_add(&p->packet, PACKET_PERF_SAMPLE, &p->part);
    put_packet(p);
}

void export_perfetto(struct export *e)
{
    const struct profile *profile = e->profile;
    struct perfetto p = {
        .e = e,
        .written = enough(calloc(2 * (size_t)profile->samples.chains.count,
                                 sizeof(*p.written))),
        .periods = enough(calloc(UINT16_MAX + 1, sizeof(*p.periods))),
    };

    places_init(&p.places, profile);
    message_number(&p.packet, PACKET_FLAGS, FLAG_CLEARED);
    message_number(&p.packet, PACKET_FIRST, 1);
    put_tree(&p);
    put_packet(&p);
    put_mappings(&p);
    put_functions(&p);
    put_frames(&p);
    put_callstacks(&p);
    message_number(&p.packet, PACKET_FLAGS, FLAG_NEEDS_INTERNED);
    message_add(&p.packet, PACKET_INTERNED, &p.part);
    put_packet(&p);
    for (size_t i = 0; i < profile->count; i++) {
        if (wanted(&p, &profile->list[i]))
            put_sample(&p, &profile->list[i]);
    }
    places_free(&p.places);
    message_free(&p.packet);
    message_free(&p.part);
    message_free(&p.inner);
    free(p.written);
    free(p.periods);
}
