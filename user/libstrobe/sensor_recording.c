// Reading files of `sensors record`: see sensor_recording.h.
#include "sensor_recording.h"

#include "map_rest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SENSORS_MAX 4096u

static uint64_t number(struct sensor_wide w)
{
    return (uint64_t)w.high << 32 | w.low;
}

// --- chunks -----------------------------------------------------------------

static const char *not_enough_memory = "not enough memory";

static const char *add(struct recording *r, const struct recorded *one)
{
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 1024;
        struct recorded *all = realloc(r->all, room * sizeof(*all));
        if (!all)
            return not_enough_memory;
        r->all = all;
        r->room = room;
    }
    r->all[r->count++] = *one;
    return NULL;
}

static char *string_of(const char *bytes, uint32_t size)
{
    char *s = malloc((size_t)size + 1);

    if (s) {
        memcpy(s, bytes, size);
        s[size] = '\0';
    }
    return s;
}

// Adds a sensor, if it is valid and the next one.
static const char *add_sensor(struct recording *r, const struct recorded *one)
{
    const struct recording_sensor *s = one->body;
    const char *strings = (const char *)(s + 1);

    if (one->bytes < sizeof(*s) || s->source != r->sensor_count ||
        s->source >= SENSORS_MAX || sensor_layout_problem(&s->layout) ||
        s->text_bytes >= SENSOR_TEXT_MAX || s->path_bytes > 4096 ||
        s->path_bytes + s->text_bytes > one->bytes - sizeof(*s)) {
        r->unknown++;
        return NULL;
    }
    struct recorded_sensor *sensors = realloc(
        r->sensors, (r->sensor_count + 1) * sizeof(struct recorded_sensor));
    if (!sensors)
        return not_enough_memory;
    r->sensors = sensors;
    sensors[r->sensor_count++] = (struct recorded_sensor){
        .layout = s->layout,
        .owner = s->owner,
        .tsc_hz = number(s->tsc_hz),
        .path = string_of(strings, s->path_bytes),
        .text = string_of(strings + s->path_bytes, s->text_bytes),
    };
    const struct recorded_sensor *last = &sensors[r->sensor_count - 1];
    return last->path && last->text ? NULL : not_enough_memory;
}

static void take_time(struct recording *r, const struct recorded *one)
{
    const struct recording_time *t = one->body;

    r->last_ns = number(t->ns);
    r->last_tsc = number(t->tsc);
    if (!r->samples++) {
        r->first_ns = r->last_ns;
        r->first_tsc = r->last_tsc;
    }
}

static bool cells_are_valid(const struct sensor_histogram_layout *h,
                            const struct recorded *one)
{
    const struct recording_histogram *r = one->body;
    const struct recording_cell *cells = (const void *)(r + 1);
    uint64_t all = sensor_cells(h) / (h->layers ? 2 : 1);

    if (r->cells > (one->bytes - sizeof(*r)) / sizeof(*cells))
        return false;
    for (uint32_t i = 0; i < r->cells; i++) {
        if (cells[i].cell >= all)
            return false;
    }
    return true;
}

static bool event_is_valid(const struct recorded *one)
{
    const struct recording_event *r = one->body;
    const struct sensor_event *e = (const void *)(r + 1);
    size_t head = sizeof(*r) + sizeof(*e);

    return one->bytes >= head && e->bytes <= one->bytes - head;
}

static bool record_is_valid(const struct recorded *one)
{
    const struct recording_record *r = one->body;
    const struct sensor_record *e = (const void *)(r + 1);

    return one->bytes >= sizeof(*r) + sizeof(*e) && e->size >= sizeof(*e) &&
           e->size <= one->bytes - sizeof(*r);
}

// Whether a chunk that begins with its source has what its kind says.
static bool is_valid(const struct recording *r, const struct recorded *one)
{
    static const struct {
        size_t bytes;
        enum sensor_type type; // SENSOR_NONE: any
    } kinds[] = {
        [RECORDING_SCALAR] = { sizeof(struct recording_scalar), SENSOR_SCALAR },
        [RECORDING_HISTOGRAM] = { sizeof(struct recording_histogram),
                                  SENSOR_HISTOGRAM },
        [RECORDING_EVENT] = { sizeof(struct recording_event), SENSOR_LIST },
        [RECORDING_RECORD] = { sizeof(struct recording_record), SENSOR_RING },
        [RECORDING_LOSS] = { sizeof(struct recording_loss), SENSOR_NONE },
    };
    if (one->kind >= sizeof(kinds) / sizeof(kinds[0]) ||
        !kinds[one->kind].bytes || one->bytes < kinds[one->kind].bytes ||
        one->source >= r->sensor_count)
        return false;
    const struct sensor_layout *l = &r->sensors[one->source].layout;
    if (kinds[one->kind].type && kinds[one->kind].type != l->type)
        return false;
    return one->kind == RECORDING_HISTOGRAM
               ? cells_are_valid(&l->histogram, one)
           : one->kind == RECORDING_EVENT  ? event_is_valid(one)
           : one->kind == RECORDING_RECORD ? record_is_valid(one)
                                           : true;
}

static bool has_own_time(const struct recording *r, const struct recorded *one)
{
    return one->kind == RECORDING_RECORD ||
           (one->kind == RECORDING_EVENT &&
            r->sensors[one->source].layout.list.clock == SENSOR_CLOCK_TSC);
}

const struct sensor_event *recorded_event(const struct recorded *one)
{
    return (const void *)((const struct recording_event *)one->body + 1);
}

const struct sensor_record *recorded_record(const struct recorded *one)
{
    return (const void *)((const struct recording_record *)one->body + 1);
}

// An event of a logical clock has the time of the sample in which it was read.
static uint64_t time_of(const struct recording *r, const struct recorded *one)
{
    if (!has_own_time(r, one))
        return r->last_tsc;
    return number(one->kind == RECORDING_EVENT ? recorded_event(one)->time
                                               : recorded_record(one)->time);
}

static const char *take(struct recording *r, struct recorded *one)
{
    one->source = 0;
    one->tsc = r->last_tsc;
    if (one->kind == RECORDING_TIME &&
        one->bytes >= sizeof(struct recording_time)) {
        take_time(r, one);
        return NULL;
    }
    if (one->kind == RECORDING_END) {
        r->ended = true;
        return NULL;
    }
    if (one->kind == RECORDING_SENSOR)
        return add_sensor(r, one);
    if (one->bytes >= sizeof(uint32_t))
        one->source = *(const uint32_t *)one->body;
    if (!is_valid(r, one)) {
        r->unknown++;
        return NULL;
    }
    one->tsc = time_of(r, one);
    return add(r, one);
}

static const char *read_chunks(struct recording *r, size_t at)
{
    const uint8_t *file = r->file;
    const char *problem = NULL;

    while (!problem && r->size - at >= sizeof(struct recording_chunk)) {
        const struct recording_chunk *c = (const void *)(file + at);
        size_t left = r->size - at - sizeof(*c);
        if (c->bytes > left || c->bytes % 4)
            break;
        struct recorded one = { .kind = c->kind,
                                .body = c + 1,
                                .bytes = c->bytes };
        problem = take(r, &one);
        at += sizeof(*c) + c->bytes;
    }
    r->cut_off = r->size - at;
    return problem;
}

// --- files ------------------------------------------------------------------

static bool is_recording(const void *bytes, size_t size)
{
    return size >= sizeof(RECORDING_MAGIC) - 1 &&
           memcmp(bytes, RECORDING_MAGIC, sizeof(RECORDING_MAGIC) - 1) == 0;
}

bool recording_is_file(const char *path)
{
    char magic[sizeof(RECORDING_MAGIC) - 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, magic, sizeof(magic));

    if (fd >= 0)
        close(fd);
    return n > 0 && is_recording(magic, (size_t)n);
}

static const char *read_all(struct recording *r)
{
    const struct recording_head *h = r->file;

    if (!is_recording(h, r->size))
        return "it is not from `sensors record`";
    if (r->size < RECORDING_HEAD_LEAST)
        return "it is cut off in its head";
    if (h->version != RECORDING_VERSION)
        return "its version is not this tool's";
    if (h->bytes < RECORDING_HEAD_LEAST || h->bytes % 4)
        return "its head contradicts itself";
    if (h->bytes > r->size)
        return "it is cut off in its head";
    r->interval_ns = number(h->interval_ns);
    if (h->bytes >= sizeof(*h)) {
        r->tsc_hz = number(h->tsc_hz);
        r->tsc_error_ppm = h->tsc_error_ppm;
    }
    return read_chunks(r, h->bytes);
}

const char *recording_open(struct recording *r, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    *r = (struct recording){ .file = MAP_FAILED, .mapped = true };
    if (fd < 0)
        return strerror(errno);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        r->size = (size_t)st.st_size;
        r->file = mmap(NULL, r->size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (r->file == MAP_FAILED)
        return "it is not from `sensors record`";
    forbid_rest(r->file, r->size);
    const char *problem = read_all(r);
    if (problem)
        recording_close(r);
    return problem;
}

const char *recording_of_chunks(struct recording *r, void *chunks, size_t size)
{
    *r = (struct recording){ .file = chunks, .size = size };
    const char *problem = read_chunks(r, 0);
    if (problem)
        recording_close(r);
    return problem;
}

void recording_close(struct recording *r)
{
    for (uint32_t i = 0; i < r->sensor_count; i++) {
        free(r->sensors[i].path);
        free(r->sensors[i].text);
    }
    free(r->sensors);
    free(r->all);
    if (r->mapped)
        munmap(r->file, r->size);
    else
        free(r->file);
    *r = (struct recording){ 0 };
}

// --- the order of time ------------------------------------------------------

static int by_time(const void *a, const void *b)
{
    const struct recorded *x = a, *y = b;

    if (x->tsc != y->tsc)
        return x->tsc < y->tsc ? -1 : 1;
    return x->body < y->body ? -1 : x->body > y->body;
}

// A loss has the time of the event that follows it.
static void place_losses(struct recording *r, uint64_t *next)
{
    for (size_t i = r->count; i--;) {
        struct recorded *one = &r->all[i];
        if (has_own_time(r, one))
            next[one->source] = one->tsc;
        else if (one->kind == RECORDING_LOSS && next[one->source])
            one->tsc = next[one->source];
    }
}

static uint64_t find_window(const struct recording *r, uint64_t *last)
{
    uint64_t window = 0;

    for (size_t i = 0; i < r->count; i++) {
        const struct recorded *one = &r->all[i];
        uint64_t *before = &last[one->source];
        if (!has_own_time(r, one))
            continue;
        if (*before > one->tsc && *before - one->tsc > window)
            window = *before - one->tsc;
        if (one->tsc > *before)
            *before = one->tsc;
    }
    return window;
}

uint64_t recording_merge(struct recording *r)
{
    uint64_t window = 0;
    uint64_t *times = calloc(2 * (size_t)r->sensor_count + 1, sizeof(*times));

    if (times) {
        place_losses(r, times);
        window = find_window(r, times + r->sensor_count);
    }
    free(times);
    if (r->count)
        qsort(r->all, r->count, sizeof(*r->all), by_time);
    return window;
}

double recording_seconds(const struct recording *r, uint64_t tsc)
{
    double cycles = (double)(int64_t)(tsc - r->first_tsc);
    double ns = (double)(r->last_ns - r->first_ns);

    if (r->last_tsc == r->first_tsc || r->last_ns == r->first_ns)
        return r->sensor_count && r->sensors[0].tsc_hz
                   ? cycles / (double)r->sensors[0].tsc_hz
                   : 0;
    return cycles * (ns / 1e9) / (double)(r->last_tsc - r->first_tsc);
}
