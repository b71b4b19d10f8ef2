// A trace in the Common Trace Format 1.8 (diamon.org/ctf): a directory with
// `metadata`, which describes the streams in the format's language, a stream
// cpu_N for each CPU that has events, and a stream sensor_N for each sensor
// that has any (trace_ctf_sensors.c).
//
// A stream is packets: magic and stream id, a context (times, size, lost events
// so far, CPU), and, of a CPU's, events: u8 id, which is the record's type, u64
// TSC, u32 thread, its name, the point's fields. Everything is aligned to
// bytes.
//
// The count of lost events may change only from packet to packet. Where events
// are missing, an empty packet stands from the time of the last event before to
// that of the loss: so readers see where.
#include "trace_ctf.h"

#include "trace_export.h"

#include "user/libtrace/graph.h"
#include "user/libtrace/points.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_BYTES 4096u

struct head {
    uint8_t id;
    uint64_t time;
    uint32_t thread;
} __attribute__((packed));

#define EVENT_MOST (sizeof(struct head) + 32 + TRACE_FIELDS_MAX)

// --- packets ----------------------------------------------------------------

static FILE *create(struct ctf *c, const char *name)
{
    char path[PATH_BYTES];
    FILE *out = NULL;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", c->directory, name) >=
        sizeof(path))
        errno = ENAMETOOLONG;
    else
        out = fopen(path, "wbx");
    if (!out && !c->error)
        c->error = errno;
    return out;
}

static void close_file(struct ctf *c, FILE *out)
{
    if (out && fclose(out) != 0 && !c->error)
        c->error = errno;
}

void ctf_end_packet(struct ctf *c, struct ctf_stream *s)
{
    struct ctf_context x = {
        .magic = CTF_MAGIC,
        .stream = s->id,
        .begin = s->begin,
        .end = s->end,
        .content_bits = (uint64_t)s->used * 8,
        .packet_bits = (uint64_t)s->used * 8,
        .lost = s->lost,
        .number = s->number,
    };

    if (!s->used)
        return;
    memcpy(s->packet, &x, sizeof(x));
    if (fwrite(s->packet, 1, s->used, s->out) != s->used && !c->error)
        c->error = errno;
    s->used = 0;
}

static void begin_packet(struct ctf_stream *s, uint64_t time)
{
    s->used = sizeof(struct ctf_context);
    s->begin = s->end = time;
}

// A packet without events, which ends at `time`.
static void put_empty(struct ctf *c, struct ctf_stream *s, uint64_t time)
{
    ctf_end_packet(c, s);
    begin_packet(s, s->end);
    s->end = time;
    ctf_end_packet(c, s);
}

void ctf_lose(struct ctf *c, struct ctf_stream *s, uint64_t time, uint64_t lost)
{
    ctf_end_packet(c, s);
    s->lost += lost;
    put_empty(c, s, time > s->end ? time : s->end);
}

uint64_t ctf_begin_event(struct ctf *c, struct ctf_stream *s, uint64_t time,
                         size_t most)
{
    // In a damaged file it may be earlier.
    time = time > s->end ? time : s->end;
    if (s->used > CTF_PACKET_BYTES - most)
        ctf_end_packet(c, s);
    if (!s->used)
        begin_packet(s, time);
    s->end = time;
    return time;
}

void ctf_add(struct ctf_stream *s, const void *bytes, size_t size)
{
    memcpy(s->packet + s->used, bytes, size);
    s->used += (uint32_t)size;
}

// The first packet is empty: losses are differences between packets.
struct ctf_stream *ctf_stream_of(struct ctf *c, struct ctf_stream **s,
                                 const char *kind, uint32_t number, uint32_t id,
                                 uint64_t time)
{
    char name[32];

    if (*s || c->error)
        return *s;
    *s = calloc(1, sizeof(**s));
    if (!*s) {
        c->error = ENOMEM;
        return NULL;
    }
    snprintf(name, sizeof(name), "%s_%" PRIu32, kind, number);
    (*s)->out = create(c, name);
    (*s)->id = id;
    (*s)->number = number;
    (*s)->end = time;
    if ((*s)->out)
        put_empty(c, *s, time);
    return *s;
}

// --- events -----------------------------------------------------------------

static void put_event(struct ctf *c, struct ctf_stream *s,
                      const struct trace_event *e)
{
    const char *fields = trace_type_fields(e->type);
    struct head h = { .id = (uint8_t)e->type, .thread = e->thread };
    char name[32];

    if (!fields) {
        c->unknown++;
        return;
    }
    h.time = ctf_begin_event(c, s, e->time, EVENT_MOST);
    ctf_add(s, &h, sizeof(h));
    trace_file_thread(c->file, e->thread, name);
    ctf_add(s, name, strlen(name) + 1);
    ctf_add(s, e->fields, trace_fields_bytes(fields));
}

static void on_event(void *arg, const struct trace_event *e)
{
    struct ctf *c = arg;
    struct ctf_stream *s =
        ctf_stream_of(c, &c->cpus[e->cpu], "cpu", e->cpu, CTF_CPUS, e->time);
    uint32_t count;

    if (!s || !s->out)
        return;
    if (e->type != TRACE_R_LOST) {
        put_event(c, s, e);
        return;
    }
    memcpy(&count, e->fields, sizeof(count));
    ctf_lose(c, s, e->time, count);
}

// --- metadata ---------------------------------------------------------------

static const char types_text[] =
    "/* CTF 1.8 */\n"
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; base = 16; } := "
    "address_t;\n"
    "trace {\n"
    "\tmajor = 1; minor = 8; byte_order = le;\n"
    "\tpacket.header := struct { uint32_t magic; uint32_t stream_id; };\n"
    "};\n";
static const char stream_text[] =
    "typealias integer { size = 64; align = 8; signed = false; map = "
    "clock.tsc.value; } := tsc_t;\n"
    "stream {\n"
    "\tid = 0;\n"
    "\tpacket.context := struct {\n"
    "\t\ttsc_t timestamp_begin; tsc_t timestamp_end;\n"
    "\t\tuint64_t content_size; uint64_t packet_size;\n"
    "\t\tuint64_t events_discarded; uint32_t cpu_id;\n"
    "\t};\n"
    "\tevent.header := struct { uint8_t id; tsc_t timestamp; };\n"
    "\tevent.context := struct { uint32_t _thread; string _name; };\n"
    "};\n";

// A string of the language, of printable characters.
void ctf_put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', out);
}

static void put_environment(struct ctf *c, FILE *out)
{
    const struct trace_file *f = c->file;
    uint64_t lost = (uint64_t)f->end.lost[1] << 32 | f->end.lost[0];

    fputs("env {\n\ttracer_name = \"strobe\";\n\tcommand = ", out);
    ctf_put_string(out, f->command);
    fprintf(out,
            ";\n\tcut_off = %d;\n\tlost_after_the_last_events = %" PRIu64 ";\n",
            !f->has_end, lost > f->reader.lost ? lost - f->reader.lost : 0);
    ctf_put_sensor_names(f, out);
    fputs("};\n", out);
    fprintf(out,
            "clock { name = tsc; description = \"TSC\"; freq = %" PRIu64
            "; };\n",
            f->tsc_hz);
}

// The _ is not a part of the name: it keeps it apart from the language's words.
static void put_class(FILE *out, uint32_t type)
{
    const char *fields = trace_type_fields(type);
    struct trace_field f;

    if (!fields)
        return;
    fprintf(out,
            "event {\n\tid = %" PRIu32 "; name = \"%s\"; stream_id = 0;\n"
            "\tfields := struct {",
            type, trace_point_name(type));
    while (trace_point_field(&fields, &f)) {
        if (trace_field_is_address(&f))
            fputs(" address_t", out);
        else
            fprintf(out, " uint%" PRIu32 "_t", f.bits);
        fprintf(out, " _%.*s;", (int)f.length, f.name);
    }
    fputs(" };\n};\n", out);
}

static void put_metadata(struct ctf *c)
{
    FILE *out = create(c, "metadata");

    if (!out)
        return;
    fputs(types_text, out);
    put_environment(c, out);
    fputs(stream_text, out);
    for (uint32_t i = 0; i < 1u << TRACE_TYPE_BITS; i++)
        put_class(out, i);
    ctf_put_sensors(c, out);
    if (ferror(out) && !c->error)
        c->error = errno ? errno : EIO;
    close_file(c, out);
}

// --- the directory ----------------------------------------------------------

static void close_stream(struct ctf *c, struct ctf_stream *s)
{
    if (!s)
        return;
    if (s->out)
        ctf_end_packet(c, s);
    close_file(c, s->out);
    free(s);
}

static void close_all(struct ctf *c)
{
    for (uint32_t i = 0; i < TRACE_CPUS_MAX; i++)
        close_stream(c, c->cpus[i]);
    for (uint32_t i = 0; i < c->file->sensors.sensor_count; i++)
        close_stream(c, c->sensors[i]);
    free(c->sensors);
}

static const char *write_all(struct ctf *c)
{
    struct trace_file *f = c->file;

    c->sensors =
        calloc(f->sensors.sensor_count + 1, sizeof(struct ctf_stream *));
    if (!c->sensors) {
        c->error = ENOMEM;
        return NULL;
    }
    f->sensed = ctf_on_sensed;
    const char *problem = trace_file_events(f, on_event, c);
    f->sensed = NULL;
    put_metadata(c); // last: what was read is known
    close_all(c);
    return problem;
}

const char *trace_ctf(const char *directory, struct trace_file *f, int *error)
{
    struct ctf c = { .directory = directory, .file = f };
    const char *problem = NULL;

    if (mkdir(directory, 0777) != 0) {
        c.error = errno;
    } else {
        problem = write_all(&c);
        if (!problem && c.unknown)
            problem = "it has events of unknown types, which are left out";
    }
    *error = c.error;
    return problem;
}
