#define _GNU_SOURCE
#include "sensor_recorder.h"

#include "strobe.h"
#include "sysinfo.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000u
#define DURATION_MIN_NS 1000000u

uint64_t recorder_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

const char *recorder_take_duration(void *ns, char *text)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end || !(seconds * NS >= DURATION_MIN_NS) ||
        seconds > 3600)
        return "not a number of seconds from 0.001 to 3600";
    *(uint64_t *)ns = (uint64_t)(seconds * NS);
    return NULL;
}

// --- chunks -----------------------------------------------------------------

static struct sensor_wide wide(uint64_t n)
{
    return (struct sensor_wide){ (uint32_t)n, (uint32_t)(n >> 32) };
}

struct piece {
    const void *bytes;
    size_t size;
};

// A chunk of some pieces, the last of which has size 0.
static void put(struct sensor_recorder *r, enum recording_kind kind,
                const struct piece *pieces)
{
    static const char zeroes[4];
    size_t size = 0;

    for (const struct piece *p = pieces; p->size; p++)
        size += p->size;
    size_t rest = -size % sizeof(zeroes);
    struct recording_chunk c = { kind, (uint32_t)(size + rest) };
    r->write(r->arg, &c, sizeof(c));
    for (const struct piece *p = pieces; p->size; p++)
        r->write(r->arg, p->bytes, p->size);
    if (rest)
        r->write(r->arg, zeroes, rest);
}

static void put_time(struct sensor_recorder *r)
{
    struct recording_time t = { .ns = wide(recorder_now_ns()) };

    sensor_read_time(&t.tsc);
    put(r, RECORDING_TIME, (struct piece[]){ { &t, sizeof(t) }, { 0 } });
}

static void put_sensor(struct sensor_recorder *r, struct sensor_source *s)
{
    const struct sensor_header *h = &s->file.view.header;
    struct recording_sensor body = {
        .source = s->number = r->numbered++,
        .owner = h->owner,
        .layout = h->layout,
        .created_ns = h->created_ns,
        .tsc_hz = h->tsc_hz,
        .path_bytes = (uint32_t)strlen(s->path),
        .text_bytes = (uint32_t)strlen(h->text),
    };

    put(r, RECORDING_SENSOR,
        (struct piece[]){ { &body, sizeof(body) },
                          { s->path, body.path_bytes },
                          { h->text, body.text_bytes },
                          { 0 } });
}

// --- samples ----------------------------------------------------------------

static void put_scalar(struct sensor_recorder *r, struct sensor_source *s)
{
    uint64_t value = sensor_view_scalar(&s->file.view);
    struct recording_scalar body = { s->number, wide(value) };

    if (r->changes_only && s->sampled && value == s->value)
        return;
    s->value = value;
    s->sampled = true;
    put(r, RECORDING_SCALAR,
        (struct piece[]){ { &body, sizeof(body) }, { 0 } });
}

static uint32_t rows_of(const struct sensor_view *v)
{
    return sensor_layers(v) * sensor_rows(v);
}

static uint32_t columns_of(const struct sensor_view *v)
{
    return v->header.layout.histogram.x.bins;
}

// The cells that have changed, in `changed`. Returns their number.
static uint32_t find_changes(struct sensor_source *s,
                             struct recording_cell *changed)
{
    const struct sensor_view *v = &s->file.view;
    uint32_t rows = sensor_rows(v), columns = columns_of(v), n = 0;
    struct sensor_cell *last = s->cells, *row = s->row;

    for (uint32_t i = 0; i < rows_of(v); i++, last += columns) {
        sensor_view_row(v, i / rows, i % rows, row);
        for (uint32_t x = 0; x < columns; x++) {
            if (row[x].hits == last[x].hits && row[x].cost == last[x].cost)
                continue;
            last[x] = row[x];
            changed[n++] =
                (struct recording_cell){ i * columns + x, wide(row[x].hits),
                                         wide(row[x].cost) };
        }
    }
    return n;
}

static void put_histogram(struct sensor_recorder *r, struct sensor_source *s)
{
    struct sensor_totals t = sensor_view_sums(&s->file.view);

    uint32_t n = find_changes(s, s->changed);

    if (r->changes_only && s->sampled && !n && t.under == s->totals.under &&
        t.over == s->totals.over)
        return;
    s->totals = t;
    s->sampled = true;
    struct recording_histogram body = {
        .source = s->number,
        .sum = wide(t.sum),
        .under = wide(t.under),
        .over = wide(t.over),
        .least = t.least,
        .most = t.most,
        .cells = n,
    };
    put(r, RECORDING_HISTOGRAM,
        (struct piece[]){ { &body, sizeof(body) },
                          { s->changed, n * sizeof(*s->changed) },
                          { 0 } });
}

// --- events -----------------------------------------------------------------

static void put_losses(struct sensor_recorder *r, struct sensor_source *s,
                       uint64_t lost, uint64_t spoilt)
{
    spoilt += s->misdated;
    struct recording_loss body = { s->number, wide(lost - s->lost),
                                   wide(spoilt - s->spoilt) };

    if (lost != s->lost || spoilt != s->spoilt)
        put(r, RECORDING_LOSS,
            (struct piece[]){ { &body, sizeof(body) }, { 0 } });
    s->lost = lost;
    s->spoilt = spoilt;
}

// Of a sensor that was created since it is no earlier event, but a spoilt one.
static bool is_earlier(struct sensor_source *s, const struct sensor_wide *time,
                       uint64_t since)
{
    bool earlier = sensor_wide_read(time) < since;

    s->misdated += earlier && s->newer;
    return earlier;
}

// At most a round: what is posted meanwhile comes with the next sample.
static void put_events(struct sensor_recorder *r, struct sensor_source *s,
                       bool over)
{
    static union {
        struct sensor_event event;
        uint32_t words[SENSOR_SLOT_BYTES_MAX / 4];
    } e;
    const struct sensor_list_layout *l = &s->file.view.header.layout.list;
    uint64_t since = l->clock == SENSOR_CLOCK_TSC ? r->since : 0;
    uint32_t most = l->slots;

    while (most-- &&
           sensor_cursor_next(&s->list, &s->file.view, over, &e.event)) {
        struct recording_event body = { s->number, s->list.next - 1 };
        if (is_earlier(s, &e.event.time, since))
            continue;
        put_losses(r, s, s->list.lost, s->list.spoilt + s->list.jumps);
        put(r, RECORDING_EVENT,
            (struct piece[]){ { &body, sizeof(body) },
                              { &e, sizeof(e.event) + e.event.bytes },
                              { 0 } });
    }
    put_losses(r, s, s->list.lost, s->list.spoilt + s->list.jumps);
}

static void put_records(struct sensor_recorder *r, struct sensor_source *s,
                        bool over)
{
    static union {
        struct sensor_record record;
        uint8_t bytes[SENSOR_RECORD_MAX];
    } e;
    uint32_t most = sensor_ring_records_max(&s->file.view);

    while (most-- &&
           sensor_ring_cursor_next(&s->ring, &s->file.view, over, &e.record)) {
        struct recording_record body = { s->number };
        if (is_earlier(s, &e.record.time, r->since))
            continue;
        put_losses(r, s, s->ring.lost, s->ring.spoilt);
        put(r, RECORDING_RECORD,
            (struct piece[]){
                { &body, sizeof(body) }, { &e, e.record.size }, { 0 } });
    }
    put_losses(r, s, s->ring.lost, s->ring.spoilt);
}

// --- sources ----------------------------------------------------------------

static bool make_cells(struct sensor_source *s)
{
    const struct sensor_view *v = &s->file.view;
    uint32_t cells = rows_of(v) * columns_of(v);

    s->row = calloc(columns_of(v), sizeof(*s->row));
    s->cells = calloc(cells, sizeof(*s->cells));
    s->changed = calloc(cells, sizeof(*s->changed));
    return s->row && s->cells && s->changed;
}

static void free_cells(struct sensor_source *s)
{
    free(s->row);
    free(s->cells);
    free(s->changed);
    s->row = s->cells = NULL;
    s->changed = NULL;
}

// Begins with what is there: of a list or ring the oldest event. One whose
// events have no time to be left out by begins with what comes.
static void begin_events(const struct sensor_recorder *r,
                         struct sensor_source *s)
{
    const struct sensor_view *v = &s->file.view;
    const struct sensor_layout *l = &v->header.layout;

    s->newer = sensor_wide_read(&v->header.created_ns) >= r->begun_ns;
    s->misdated = 0;
    if (l->type == SENSOR_LIST) {
        sensor_cursor_begin(&s->list, v);
        if (s->newer)
            s->list.next = 0;
        else if (r->since && l->list.clock == SENSOR_CLOCK_LOGICAL)
            s->list.next = sensor_view_numbers(v);
    } else if (l->type == SENSOR_RING) {
        sensor_ring_cursor_begin(&s->ring, v);
        s->ring.begun |= s->newer;
    }
}

static bool begin(struct sensor_recorder *r, struct sensor_source *s)
{
    if (s->file.view.header.layout.type == SENSOR_HISTOGRAM && !make_cells(s)) {
        free_cells(s);
        return false;
    }
    begin_events(r, s);
    s->open = true;
    put_sensor(r, s);
    return true;
}

static bool is_closed(const struct sensor_source *s)
{
    return sensor_wide_read(&s->file.view.header.closed_ns) != 0;
}

const char *recorder_open(struct sensor_recorder *r, struct sensor_source *s,
                          bool awaited)
{
    const char *problem = sensor_file_open(&s->file, s->path);

    if (problem)
        return problem;
    if (awaited && is_closed(s))
        problem = "it is closed";
    else if (!begin(r, s))
        problem = "not enough memory";
    if (problem)
        sensor_file_close(&s->file);
    return problem;
}

struct sensor_source *recorder_add(struct sensor_recorder *r, const char *path)
{
    struct sensor_source *s = calloc(1, sizeof(*s));
    struct sensor_source **more =
        realloc(r->sources, (r->count + 1) * sizeof(*more));

    if (more)
        r->sources = more;
    if (!s || !more || !(s->path = strdup(path))) {
        free(s);
        return NULL;
    }
    r->sources[r->count++] = s;
    return s;
}

static void sample(struct sensor_recorder *r, struct sensor_source *s)
{
    struct sensor_file *f = &s->file;
    struct sensor_layout layout = f->view.header.layout;

    // The kernel's part of the header may have changed: closed. In a file of
    // /dev/shm the owner may change all of it.
    if (sensor_view_init(&f->view, f->memory, f->size) != NULL ||
        memcmp(&layout, &f->view.header.layout, sizeof(layout)) != 0) {
        s->done = s->broken = true;
        return;
    }
    bool closed = is_closed(s);
    switch (f->view.header.layout.type) {
    case SENSOR_SCALAR:
        put_scalar(r, s);
        break;
    case SENSOR_HISTOGRAM:
        put_histogram(r, s);
        break;
    case SENSOR_LIST:
        put_events(r, s, closed);
        break;
    case SENSOR_RING:
        put_records(r, s, closed);
        break;
    }
    s->done = closed;
}

bool recorder_sample(struct sensor_recorder *r)
{
    bool some = false;

    put_time(r);
    for (uint32_t i = 0; i < r->count; i++) {
        struct sensor_source *s = r->sources[i];
        if (s->open && !s->done)
            sample(r, s);
        some |= s->open && !s->done;
    }
    return some;
}

void recorder_restart(struct sensor_recorder *r, uint64_t since)
{
    r->since = since;
    r->begun_ns = UINT64_MAX; // what was overwritten is not lost
    r->numbered = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct sensor_source *s = r->sources[i];
        if (!s->open || s->broken)
            continue;
        free_cells(s);
        s->lost = s->spoilt = 0;
        s->sampled = false;
        s->done = !begin(r, s);
    }
}

void recorder_free(struct sensor_recorder *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        struct sensor_source *s = r->sources[i];
        if (s->open)
            sensor_file_close(&s->file);
        free_cells(s);
        free(s->path);
        free(s);
    }
    free(r->sources);
    r->sources = NULL;
    r->count = 0;
}

// --- by patterns ------------------------------------------------------------

static bool is_named(const char *patterns, const char *path)
{
    static const char root[] = "/sensors/";
    char one[256];

    if (strncmp(path, root, sizeof(root) - 1) == 0)
        path += sizeof(root) - 1;
    for (const char *p = patterns; *p; p += *p == ',') {
        size_t length = strcspn(p, ",");
        size_t skip = strncmp(p, root, sizeof(root) - 1) ? 0 : sizeof(root) - 1;
        if (length < sizeof(one) && length > skip) {
            memcpy(one, p + skip, length - skip);
            one[length - skip] = '\0';
            if (fnmatch(one, path, FNM_LEADING_DIR) == 0)
                return true;
        }
        p += length;
    }
    return false;
}

// The rings of a trace that this program has begun are its own, too.
static bool is_known(const struct sensor_recorder *r,
                     const struct sysinfo_sensor *listed)
{
    if (listed->owner == (uint32_t)getpid())
        return true;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct sensor_source *s = r->sources[i];
        if (s->owner == listed->owner && strcmp(s->path, listed->path) == 0)
            return true;
    }
    return false;
}

int recorder_find(struct sensor_recorder *r, const char *patterns)
{
    size_t count = 0;
    struct sysinfo_sensor *all = sysinfo_read_sensor("system.sensors", &count);
    int added = 0;

    for (size_t i = 0; all && i < count && added >= 0; i++) {
        const struct sysinfo_sensor *listed = &all[i];
        if (!is_named(patterns, listed->path) || is_known(r, listed) ||
            strcmp(listed->state, "new") == 0)
            continue;
        struct sensor_source *s = recorder_add(r, listed->path);
        added = s ? added + 1 : -1;
        if (!s)
            break;
        s->owner = listed->owner;
        if (r->scanned || strcmp(listed->state, "closed") != 0)
            s->problem = recorder_open(r, s, false);
    }
    free(all);
    r->scanned = true;
    return added;
}
