// sensors record: writes the values of sensors into a file, at an interval, and
// all events of lists and rings. It only reads the sensors: what it is too slow
// for is counted in the file.
//
// The file has whole chunks in the order of what happened, so it is of use up
// to where it was cut off.
#define _GNU_SOURCE
#include "sensors.h"

#include "user/libstrobe/child.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/sensor_print.h"
#include "user/libstrobe/strobe.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <strobe/sensor_recording.h>

#define NS 1000000000u
#define INTERVAL_MIN_NS 1000000u // 1 ms
#define INTERVAL_NS (NS / 10)

static struct settings {
    const char *file, *interval, *duration;
} settings;
static const struct tool_option options[] = {
    { 'o', "output", "file", "The file to write", .text = &settings.file },
    { 'i', "interval", "seconds", "Between samples (0.001 to 3600; 0.1)",
      .text = &settings.interval },
    { 'd', "duration", "seconds", "End after this time",
      .text = &settings.duration },
    { 0 },
};
static const struct tool tool = {
    .usage = "sensors record -o FILE [OPTIONS] PATH... [-- COMMAND...]",
    .options = options,
    .notes =
        "Ends with the command, after the duration, at ^C, or when all sensors "
        "are\nclosed. A sensor that the command creates is recorded from its "
        "first event on.\n`strobe sensors FILE` and `sensors FILE` print the "
        "file.\n",
};

struct source {
    const char *path;
    struct sensor_file file;
    bool open, done; // done: closed, and all of it is in the file
    bool broken;     // its owner changed its header: no more of it is read
    union {
        struct sensor_cursor list;
        struct sensor_ring_cursor ring;
    };
    uint64_t *cells; // a histogram's, at the last sample: count, cost
    uint64_t lost, spoilt;
};

static struct source *sources;
static uint32_t source_count;
static uint64_t begun_ns;

// --- the file ---------------------------------------------------------------

static FILE *out;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static void must_write(bool written)
{
    uint64_t ms = (now_ns() - begun_ns) / 1000000;

    if (!written)
        fail(1,
             "%s: %s; it has what was recorded in the first %" PRIu64
             ".%03" PRIu64 " s",
             settings.file, strerror(errno), ms / 1000, ms % 1000);
}

static struct sensor_wide wide(uint64_t n)
{
    return (struct sensor_wide){ (uint32_t)n, (uint32_t)(n >> 32) };
}

struct piece {
    const void *bytes;
    size_t size;
};

// A chunk of some pieces, the last of which has size 0.
static void put(enum recording_kind kind, const struct piece *pieces)
{
    static const char zeroes[4];
    size_t size = 0;

    for (const struct piece *p = pieces; p->size; p++)
        size += p->size;
    size_t rest = -size % sizeof(zeroes);
    struct recording_chunk c = { kind, (uint32_t)(size + rest) };
    must_write(fwrite(&c, sizeof(c), 1, out) == 1);
    for (const struct piece *p = pieces; p->size; p++)
        must_write(fwrite(p->bytes, p->size, 1, out) == 1);
    must_write(fwrite(zeroes, 1, rest, out) == rest);
}

static void put_head(uint64_t interval)
{
    struct recording_head h = { RECORDING_MAGIC, RECORDING_VERSION, sizeof(h),
                                wide(interval) };

    must_write(fwrite(&h, sizeof(h), 1, out) == 1);
}

static void put_time(void)
{
    struct recording_time t = { .ns = wide(now_ns()) };

    sensor_read_time(&t.tsc);
    put(RECORDING_TIME, (struct piece[]){ { &t, sizeof(t) }, { 0 } });
}

static void put_sensor(const struct source *s)
{
    const struct sensor_header *h = &s->file.view.header;
    struct recording_sensor r = {
        .source = (uint32_t)(s - sources),
        .owner = h->owner,
        .layout = h->layout,
        .created_ns = h->created_ns,
        .tsc_hz = h->tsc_hz,
        .path_bytes = (uint32_t)strlen(s->path),
        .text_bytes = (uint32_t)strlen(h->text),
    };

    put(RECORDING_SENSOR, (struct piece[]){ { &r, sizeof(r) },
                                            { s->path, r.path_bytes },
                                            { h->text, r.text_bytes },
                                            { 0 } });
}

// --- samples ----------------------------------------------------------------

static void put_scalar(struct source *s)
{
    struct recording_scalar r = { (uint32_t)(s - sources),
                                  wide(sensor_view_scalar(&s->file.view)) };

    put(RECORDING_SCALAR, (struct piece[]){ { &r, sizeof(r) }, { 0 } });
}

static uint32_t cells_of(const struct sensor_view *v)
{
    return sensor_layers(v) * sensor_rows(v) *
           v->header.layout.histogram.x.bins;
}

// The cells that have changed, in `changed`. Returns their number.
static uint32_t find_changes(struct source *s, struct recording_cell *changed)
{
    const struct sensor_view *v = &s->file.view;
    uint32_t columns = v->header.layout.histogram.x.bins;
    uint32_t rows = sensor_rows(v), layers = sensor_layers(v);
    uint32_t layer = 0, row = 0, column = 0, n = 0;
    uint64_t *last = s->cells;

    for (uint32_t i = 0; layer < layers; i++, last += 2) {
        uint64_t cost, hits = sensor_view_cell(v, layer, row, column, &cost);
        if (hits != last[0] || cost != last[1]) {
            last[0] = hits;
            last[1] = cost;
            changed[n++] = (struct recording_cell){ i, wide(hits), wide(cost) };
        }
        if (++column == columns) {
            column = 0;
            if (++row == rows) {
                row = 0;
                layer++;
            }
        }
    }
    return n;
}

static void put_histogram(struct source *s)
{
    struct sensor_totals t = sensor_view_sums(&s->file.view);
    struct recording_cell *changed =
        malloc(cells_of(&s->file.view) * sizeof(*changed));

    if (!changed)
        fail(1, "not enough memory");
    uint32_t n = find_changes(s, changed);
    struct recording_histogram r = {
        .source = (uint32_t)(s - sources),
        .sum = wide(t.sum),
        .under = wide(t.under),
        .over = wide(t.over),
        .least = t.least,
        .most = t.most,
        .cells = n,
    };
    put(RECORDING_HISTOGRAM,
        (struct piece[]){
            { &r, sizeof(r) }, { changed, n * sizeof(*changed) }, { 0 } });
    free(changed);
}

// --- events -----------------------------------------------------------------

static void put_losses(struct source *s, uint64_t lost, uint64_t spoilt)
{
    struct recording_loss r = { (uint32_t)(s - sources), wide(lost - s->lost),
                                wide(spoilt - s->spoilt) };

    if (lost != s->lost || spoilt != s->spoilt)
        put(RECORDING_LOSS, (struct piece[]){ { &r, sizeof(r) }, { 0 } });
    s->lost = lost;
    s->spoilt = spoilt;
}

// At most a round: what is posted meanwhile comes with the next sample.
static void put_events(struct source *s, bool over)
{
    static union {
        struct sensor_event event;
        uint32_t words[SENSOR_SLOT_BYTES_MAX / 4];
    } e;
    uint32_t most = s->file.view.header.layout.list.slots;

    while (most-- &&
           sensor_cursor_next(&s->list, &s->file.view, over, &e.event)) {
        struct recording_event r = { (uint32_t)(s - sources),
                                     s->list.next - 1 };
        put_losses(s, s->list.lost, s->list.spoilt + s->list.jumps);
        put(RECORDING_EVENT,
            (struct piece[]){ { &r, sizeof(r) },
                              { &e, sizeof(e.event) + e.event.bytes },
                              { 0 } });
    }
    put_losses(s, s->list.lost, s->list.spoilt + s->list.jumps);
}

static void put_records(struct source *s, bool over)
{
    static union {
        struct sensor_record record;
        uint8_t bytes[SENSOR_RECORD_MAX];
    } e;
    uint32_t most =
        s->file.view.header.layout.ring.bytes / sizeof(struct sensor_record);

    while (most-- &&
           sensor_ring_cursor_next(&s->ring, &s->file.view, over, &e.record)) {
        struct recording_record r = { (uint32_t)(s - sources) };
        put_losses(s, s->ring.lost, s->ring.spoilt);
        put(RECORDING_RECORD, (struct piece[]){ { &r, sizeof(r) },
                                                { &e, e.record.size },
                                                { 0 } });
    }
    put_losses(s, s->ring.lost, s->ring.spoilt);
}

// --- sources ----------------------------------------------------------------

// Begins with what is there: of a list or ring the oldest event. Of one that is
// newer than the recording all numbers are counted.
static void begin(struct source *s)
{
    const struct sensor_view *v = &s->file.view;
    bool newer = sensor_wide_read(&v->header.created_ns) >= begun_ns;

    switch (v->header.layout.type) {
    case SENSOR_HISTOGRAM:
        s->cells = calloc(cells_of(v), 2 * sizeof(*s->cells));
        if (!s->cells)
            fail(1, "not enough memory");
        break;
    case SENSOR_LIST:
        sensor_cursor_begin(&s->list, v);
        if (newer)
            s->list.next = 0;
        break;
    case SENSOR_RING:
        sensor_ring_cursor_begin(&s->ring, v);
        s->ring.begun |= newer;
        break;
    }
    s->open = true;
    put_sensor(s);
}

static bool is_closed(const struct source *s)
{
    return sensor_wide_read(&s->file.view.header.closed_ns) != 0;
}

// Opens it, if it is there. `awaited`: a command is to create it; one that is
// closed is that of an earlier program. Returns why not, or NULL.
static const char *open_source(struct source *s, bool awaited)
{
    const char *problem = sensor_file_open(&s->file, s->path);

    if (!problem && awaited && is_closed(s)) {
        sensor_file_close(&s->file);
        problem = "it is closed";
    }
    if (!problem)
        begin(s);
    return problem;
}

static void sample(struct source *s)
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
        put_scalar(s);
        break;
    case SENSOR_HISTOGRAM:
        put_histogram(s);
        break;
    case SENSOR_LIST:
        put_events(s, closed);
        break;
    case SENSOR_RING:
        put_records(s, closed);
        break;
    }
    s->done = closed;
}

// --- the recording ----------------------------------------------------------

// Samples all. False: all are done.
static bool sample_all(bool awaited)
{
    bool some = false;

    put_time();
    for (uint32_t i = 0; i < source_count; i++) {
        struct source *s = &sources[i];
        if (!s->open)
            open_source(s, awaited);
        if (s->open && !s->done)
            sample(s);
        some |= !s->done;
    }
    must_write(fflush(out) == 0);
    return some;
}

// Sleeps until then, or a signal. True: one that asks to end.
static bool sleep_until(uint64_t ns, const sigset_t *signals)
{
    uint64_t now = now_ns();

    if (ns <= now)
        return false;
    struct timespec t = { (time_t)((ns - now) / NS), (long)((ns - now) % NS) };
    int signal = sigtimedwait(signals, NULL, &t);
    return signal == SIGINT || signal == SIGTERM;
}

static void record(uint64_t interval, uint64_t end, struct child *child)
{
    sigset_t signals;
    bool asked = false;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    for (uint64_t next = begun_ns;; next += interval) {
        bool ended =
            asked || (child && child_has_ended(child)) || now_ns() >= end;
        bool some = sample_all(child && !ended);
        if (ended || (!some && !child))
            break;
        if (now_ns() > next + interval) // it was not fast enough
            next = now_ns();
        asked = sleep_until(next + interval < end ? next + interval : end,
                            &signals);
    }
    put(RECORDING_END, (struct piece[]){ { 0 } });
    must_write(fclose(out) == 0);
}

// --- arguments --------------------------------------------------------------

// Parses seconds with up to nine decimals, from 1 ms to 3600 s.
static uint64_t duration_of(const char *text, const char *option)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end || !(seconds * NS >= INTERVAL_MIN_NS) ||
        seconds > 3600) {
        complain("%s %s: not a number of seconds from 0.001 to 3600", option,
                 text);
        options_wrong(&tool);
    }
    return (uint64_t)(seconds * NS);
}

static void open_sources(char **paths, uint32_t count, bool awaited)
{
    sources = calloc(count, sizeof(*sources));
    if (!sources)
        fail(1, "not enough memory");
    source_count = count;
    for (uint32_t i = 0; i < count; i++) {
        sources[i].path = paths[i];
        const char *problem = open_source(&sources[i], awaited);
        if (problem && !awaited)
            fail(1, "%s: %s", paths[i], problem);
    }
}

// What was recorded, and what is not there.
static int report(void)
{
    int status = 0;

    for (uint32_t i = 0; i < source_count; i++) {
        const struct source *s = &sources[i];
        if (!s->open) {
            complain("%s: it was not created", s->path);
            status = 1;
        } else if (s->broken) {
            complain("%s: its owner has spoilt it; what was recorded before "
                     "is in the file",
                     s->path);
            status = 1;
        } else if (s->lost || s->spoilt) {
            complain("%s: lost %" PRIu64 ", spoilt %" PRIu64 " events", s->path,
                     s->lost, s->spoilt);
        }
    }
    return status;
}

int record_command(int argc, char *argv[])
{
    int own = 1;
    struct child child;
    char **command = NULL;

    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    if (own < argc - 1)
        command = &argv[own + 1];
    if (own < argc)
        argv[own] = NULL;
    int first = options_parse(&tool, own, argv);
    if (!settings.file || first == own) {
        complain(settings.file ? "record: which sensors? (`sensors` lists them)"
                               : "record: -o FILE is missing");
        options_wrong(&tool);
    }
    uint64_t interval = INTERVAL_NS, end = UINT64_MAX;
    if (settings.interval)
        interval = duration_of(settings.interval, "--interval");
    begun_ns = now_ns();
    if (settings.duration)
        end = begun_ns + duration_of(settings.duration, "--duration");
    if (command)
        child_start(&child, command);
    out = fopen(settings.file, "we");
    must_write(out != NULL);
    put_head(interval);
    open_sources(argv + first, (uint32_t)(own - first), command != NULL);
    if (command)
        child_go(&child);
    record(interval, end, command ? &child : NULL);
    int status = report();
    int ended = command ? child_end(&child) : 0;
    return ended ? ended : status;
}
