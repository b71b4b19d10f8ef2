// Two passes over the chunks: the first one, when the file is opened, takes
// names and the end and skips events; the second one, for each reading, decodes
// these.
#include "file.h"

#include "points.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 16u
#define BODY_MAX (64u << 20) // of a chunk that is taken whole

struct trace_name {
    uint32_t thread, task;
    uint64_t since; // of a change to come
    char name[NAME_BYTES + 1];
};

static const char no_memory[] = "not enough memory for the trace";

static uint64_t wide(const uint32_t word[2])
{
    return (uint64_t)word[1] << 32 | word[0];
}

uint64_t trace_file_ns(const struct trace_file *f, uint64_t cycles)
{
    return cycles / f->tsc_hz * 1000000000 +
           cycles % f->tsc_hz * 1000000000 / f->tsc_hz;
}

// --- names ------------------------------------------------------------------

static struct trace_name *find_name(const struct trace_file *f, uint32_t thread)
{
    for (uint32_t i = 0; i < f->name_count; i++) {
        if (f->names[i].thread == thread)
            return &f->names[i];
    }
    return NULL;
}

// Up to the end of its line: `echo NAME >/proc/self/comm` writes that, too.
// Bytes that a terminal might take for more than a character become '?'.
static void copy_name(char *out, const char *name)
{
    size_t n = 0;

    for (; n < NAME_BYTES && name[n] && name[n] != '\n'; n++)
        out[n] = name[n] >= ' ' && name[n] <= '~' ? name[n] : '?';
    out[n] = '\0';
}

// Room for one more of `list`, whose size doubles. False: no memory.
static bool make_room(struct trace_name **list, uint32_t count, uint32_t *room)
{
    uint32_t more = *room ? *room * 2 : 64;

    if (count < *room)
        return true;
    void *bytes = realloc(*list, more * sizeof(**list));
    if (!bytes)
        return false;
    *list = bytes;
    *room = more;
    return true;
}

// Without memory for it a thread is shown by its number.
static void set_name(struct trace_file *f, uint32_t thread, uint32_t task,
                     const char *name)
{
    struct trace_name *n = find_name(f, thread);

    if (!n && !make_room(&f->names, f->name_count, &f->name_room))
        return;
    if (!n)
        n = &f->names[f->name_count++];
    n->thread = thread;
    n->task = task;
    copy_name(n->name, name);
}

const char *trace_file_name(const struct trace_file *f, uint32_t thread,
                            uint32_t *task)
{
    const struct trace_name *n = thread ? find_name(f, thread) : NULL;

    *task = n ? n->task : 0;
    return n ? n->name : NULL;
}

void trace_file_thread(const struct trace_file *f, uint32_t thread,
                       char out[32])
{
    uint32_t task;
    const char *name = trace_file_name(f, thread, &task);

    if (!thread)
        strcpy(out, "[idle]");
    else
        snprintf(out, 32, "%s:%" PRIu32, name ? name : "?", thread);
}

const char *trace_file_nth_name(const struct trace_file *f, uint32_t n,
                                uint32_t *thread)
{
    if (n >= f->name_count)
        return NULL;
    *thread = f->names[n].thread;
    return f->names[n].name;
}

// The kernel tells of tasks before their events are read: the first name is
// that of the time before, too; later ones are set when it comes to their time.
static void take_task(void *arg, const struct sprofile_task *t)
{
    struct trace_file *f = arg;
    uint32_t thread = t->kind == SPROFILE_T_NAMED ? t->parent : t->task;

    if (t->kind == SPROFILE_T_ENDED && find_name(f, thread))
        return;
    if (!find_name(f, thread) ||
        !make_room(&f->changes, f->change_count, &f->change_room)) {
        set_name(f, thread, t->task, t->name);
        return;
    }
    struct trace_name *c = &f->changes[f->change_count++];
    *c = (struct trace_name){ thread, t->task, t->head.time, "" };
    copy_name(c->name, t->name);
}

static void pass_names(struct trace_file *f, uint64_t until)
{
    for (; f->changed < f->change_count; f->changed++) {
        const struct trace_name *c = &f->changes[f->changed];
        if (c->since > until)
            return;
        set_name(f, c->thread, c->task, c->name);
    }
}

// What the sensors had up to this time.
static void pass_sensed(struct trace_file *f, uint64_t until)
{
    const struct recording *r = &f->sensors;

    for (; f->sensed && f->sensed_count < r->count; f->sensed_count++) {
        const struct recorded *one = &r->all[f->sensed_count];
        if (one->tsc > until)
            return;
        f->sensed(f->arg, one);
    }
}

static void pass_event(void *arg, const struct trace_event *e)
{
    struct trace_file *f = arg;

    pass_sensed(f, e->time);
    pass_names(f, e->time);
    f->event(f->arg, e);
}

// --- chunks -----------------------------------------------------------------

// Reads up to `size` bytes of a body, of which there may be fewer.
static size_t take(struct trace_file *f, void *out, size_t size)
{
    memset(out, 0, size);
    return fread(out, 1, size, f->in);
}

static size_t least(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

// Names end up in lines of a terminal.
static bool is_printable(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] != '\n' && (text[i] < ' ' || text[i] > '~'))
            return false;
    }
    return true;
}

// Without memory for it, or if it is damaged, functions are shown by address.
static void take_functions(struct trace_file *f, uint64_t there)
{
    if (there > BODY_MAX || f->functions.count)
        return;
    char *text = malloc((size_t)there + 1);
    if (!text)
        return;
    size_t n = take(f, text, (size_t)there);
    if (is_printable(text, n) && functions_read(&f->functions, text, n))
        functions_free(&f->functions);
    free(text);
}

static void take_counters(struct trace_file *f, uint32_t bytes)
{
    char text[TRACE_COUNTERS * (TRACE_COUNTER_NAME + 1) + 1];
    size_t n = take(f, text, least(bytes, sizeof(text) - 1));
    const char *line = text;

    if (!is_printable(text, n))
        return;
    for (uint32_t i = 0; i < TRACE_COUNTERS; i++) {
        size_t length = strcspn(line, "\n");
        if (length && length < TRACE_COUNTER_NAME)
            snprintf(f->counters[i], TRACE_COUNTER_NAME, "%.*s", (int)length,
                     line);
        line += length + (line[length] == '\n');
    }
}

void trace_file_function(const struct trace_file *f, uint32_t address,
                         char *out)
{
    const struct function *at = functions_find(&f->functions, address);

    if (at)
        snprintf(out, TRACE_FUNCTION_BYTES, "%s", at->name);
    else
        snprintf(out, TRACE_FUNCTION_BYTES, "%#" PRIx32, address);
}

uint64_t trace_file_whole_since(const struct trace_file *f)
{
    return (uint64_t)f->flight.since[1] << 32 | f->flight.since[0];
}

static const char *take_points(struct trace_file *f, uint32_t bytes)
{
    char text[4096];
    size_t n = take(f, text, least(bytes, sizeof(text)));

    if (n < bytes && n < sizeof(text))
        return "it was cut off before its first event";
    return trace_points_are(text, n)
               ? NULL
               : "it is of a kernel with other trace points: read it with the "
                 "tools of that kernel";
}

// The chunk's bytes, behind those of the ones before.
static const char *take_sensors(struct trace_file *f, uint64_t there)
{
    if (!there)
        return NULL;
    if (there > BODY_MAX)
        return "a chunk of sensors is too large";
    if (f->chunks_room - f->chunks_used < there) {
        size_t room = 2 * f->chunks_room + (size_t)there;
        void *more = realloc(f->chunks, room);
        if (!more)
            return no_memory;
        f->chunks = more;
        f->chunks_room = room;
    }
    f->chunks_used += take(f, f->chunks + f->chunks_used, (size_t)there);
    return NULL;
}

// `there` bytes of the chunk are in the file.
static const char *take_description(struct trace_file *f, uint32_t kind,
                                    uint32_t bytes, uint64_t there)
{
    struct trace_file_thread t;

    switch (kind) {
    case TRACE_FILE_POINTS:
        return take_points(f, bytes);
    case TRACE_FILE_SENSORS:
        // Once: when the file is opened.
        return f->has_sensors ? NULL : take_sensors(f, there);
    case TRACE_FILE_COMMAND:
        take(f, f->command, least(there, sizeof(f->command) - 1));
        for (char *p = f->command; *p; p++)
            *p = *p >= ' ' && *p <= '~' ? *p : '?';
        break;
    case TRACE_FILE_THREAD:
        if (there >= sizeof(t) && take(f, &t, sizeof(t)) == sizeof(t) &&
            !find_name(f, t.thread))
            set_name(f, t.thread, t.task, t.name);
        break;
    case TRACE_FILE_FUNCTIONS:
        take_functions(f, there);
        break;
    case TRACE_FILE_COUNTERS:
        take_counters(f, (uint32_t)there);
        break;
    case TRACE_FILE_FLIGHT:
        take(f, &f->flight, least(there, sizeof(f->flight)));
        f->reader.partial_until = trace_file_whole_since(f);
        break;
    case TRACE_FILE_END:
        f->has_end = there == bytes &&
                     bytes >= offsetof(struct trace_file_end, throttled);
        take(f, &f->end, least(bytes, sizeof(f->end)));
        break;
    }
    return NULL;
}

// `there` bytes, or as many as there are of a chunk that was cut off.
static const char *take_blocks(struct trace_file *f, uint32_t bytes,
                               uint64_t there)
{
    if (bytes > BODY_MAX)
        return "a chunk of events is too large";
    void *body = malloc(there ? (size_t)there : 1);
    if (!body)
        return no_memory;
    size_t n = take(f, body, (size_t)there);
    const char *problem = trace_reader_take(&f->reader, body, n);
    free(body);
    // What was cut off ends anywhere.
    return n < bytes ? NULL : problem;
}

// All chunks: descriptions, or events.
static const char *walk(struct trace_file *f, bool events)
{
    uint64_t at = f->head.bytes;
    struct trace_file_chunk c;
    const char *problem = NULL;
    bool first = true;

    for (; at + sizeof(c) <= f->bytes && !problem; first = false) {
        if (fseeko(f->in, (off_t)at, SEEK_SET) != 0 ||
            take(f, &c, sizeof(c)) != sizeof(c))
            return strerror(errno ? errno : EIO);
        at += sizeof(c);
        uint64_t there = f->bytes - at < c.bytes ? f->bytes - at : c.bytes;
        if (!events && first && c.kind != TRACE_FILE_POINTS)
            return "it does not say which trace points it has";
        if (!events && c.kind != TRACE_FILE_BLOCKS)
            problem = take_description(f, c.kind, c.bytes, there);
        else if (events && c.kind == TRACE_FILE_BLOCKS)
            problem = take_blocks(f, c.bytes, there);
        at += c.bytes;
    }
    return !events && first ? "it was cut off before its first event" : problem;
}

// --- the file ---------------------------------------------------------------

static const char *take_head(struct trace_file *f)
{
    struct trace_file_head *h = &f->head;
    uint32_t least_bytes = offsetof(struct trace_file_head, event_cycles);
    size_t n = take(f, h, sizeof(*h));

    if (n < sizeof(h->magic) ||
        memcmp(h->magic, TRACE_FILE_MAGIC, sizeof(h->magic)) != 0)
        return "it is no file of `trace record`";
    if (n < least_bytes)
        return "it was cut off before its first event";
    if (h->version != TRACE_FILE_VERSION || h->trace_version != TRACE_VERSION)
        return "it is of another version of Strobe: read it with that "
               "version's tools";
    if (h->bytes < least_bytes || h->cpus > TRACE_CPUS_MAX)
        return "its head is damaged";
    if (h->bytes < sizeof(*h))
        memset((char *)h + h->bytes, 0, sizeof(*h) - h->bytes);
    f->tsc_hz = wide(h->tsc_hz);
    return f->tsc_hz ? NULL : "its head is damaged";
}

// All chunks of sensors are one recording.
static const char *take_recording(struct trace_file *f)
{
    uint8_t *chunks = f->chunks;

    f->chunks = NULL;
    f->has_sensors = true;
    if (!chunks)
        return NULL;
    const char *problem =
        recording_of_chunks(&f->sensors, chunks, f->chunks_used);
    if (!problem)
        recording_merge(&f->sensors);
    return problem;
}

static const char *read_descriptions(struct trace_file *f)
{
    if (fseeko(f->in, 0, SEEK_END) != 0)
        return "it can be read only from a file, not from a pipe";
    off_t bytes = ftello(f->in);
    if (bytes < 0 || fseeko(f->in, 0, SEEK_SET) != 0)
        return strerror(errno);
    f->bytes = (uint64_t)bytes;
    const char *problem = take_head(f);
    if (!problem)
        problem = walk(f, false);
    return problem ? problem : take_recording(f);
}

const char *trace_file_open(struct trace_file *f, const char *path)
{
    memset(f, 0, sizeof(*f));
    strcpy(f->counters[0], "first");
    strcpy(f->counters[1], "second");
    f->in = fopen(path, "rb");
    if (!f->in)
        return strerror(errno);
    const char *problem = read_descriptions(f);
    if (problem)
        trace_file_close(f);
    return problem;
}

const char *trace_file_events(struct trace_file *f,
                              void (*event)(void *arg,
                                            const struct trace_event *e),
                              void *arg)
{
    trace_reader_free(&f->reader);
    f->reader = (struct trace_reader){ .event = pass_event,
                                       .task = take_task,
                                       .arg = f };
    f->event = event;
    f->arg = arg;
    f->sensed_count = 0;
    // Those that the last reading has left are later ones.
    f->name_count = f->change_count = f->changed = 0;
    const char *problem = walk(f, false);
    if (!problem)
        problem = walk(f, true);
    trace_reader_finish(&f->reader);
    pass_sensed(f, UINT64_MAX);
    pass_names(f, UINT64_MAX);
    if (!problem && f->has_end && (f->sensors.cut_off || f->sensors.unknown))
        problem = "what it has of sensors is damaged, or of a later version";
    return problem;
}

void trace_file_close(struct trace_file *f)
{
    if (f->in)
        fclose(f->in);
    trace_reader_free(&f->reader);
    recording_close(&f->sensors);
    free(f->chunks);
    functions_free(&f->functions);
    free(f->names);
    free(f->changes);
    f->chunks = NULL;
    f->names = f->changes = NULL;
    f->in = NULL;
}
