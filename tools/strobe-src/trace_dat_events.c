// Events of a trace.dat file: their formats, which the file has as texts like
// those of Linux's events/SYSTEM/EVENT/format, and the data in the pages.
//
// Points that are events of Linux have its names and fields
// (trace_dat_linux.c). All others are in the system "strobe", with the fields
// of points.def. What sensors had is there as `strobe:sensor`, a text.
//
// Each event begins with Linux's common fields: Documentation/trace/events.rst,
// "Event formats".
#include "trace_dat.h"

#include "user/libtrace/graph.h"
#include "user/libtrace/points.h"
#include "user/libtrace/sensed.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// Numbers of events: of Linux's, and of a type of the trace. Linux's own, fixed
// numbers are lower.
#define LINUX_ID(event) (100u + (uint32_t)((event)-dat_linux_events))
#define OWN_ID(type) (200u + (type))
#define SENSED_ID OWN_ID(1u << TRACE_TYPE_BITS)

struct common {
    uint16_t type;
    uint8_t flags, preempt_count;
    int32_t pid;
};

_Static_assert(sizeof(struct common) + TRACE_FIELDS_MAX <= DAT_EVENT_MOST,
               "room for the longest record");

// --- data -------------------------------------------------------------------

static void put_comm(uint8_t out[DAT_COMM_BYTES], const struct trace_file *f,
                     uint32_t thread, uint32_t cpu)
{
    uint32_t task;
    const char *known = trace_file_name(f, thread, &task);
    char name[32];

    if (thread)
        snprintf(name, sizeof(name), "%s", known ? known : "?");
    else
        snprintf(name, sizeof(name), "swapper/%" PRIu32, cpu);
    memcpy(out, name, strnlen(name, DAT_COMM_BYTES - 1));
}

// Returns where the fields end.
static uint32_t put_values(uint8_t *out, uint32_t at,
                           const struct dat_field *fields,
                           const struct trace_file *f,
                           const struct trace_event *e)
{
    for (; fields->declaration; at += fields->bytes, fields++) {
        uint32_t value = fields->value(e);
        assert(at + fields->bytes <= DAT_EVENT_MOST);
        if (fields->bytes == DAT_COMM_BYTES)
            put_comm(out + at, f, value, e->cpu);
        else
            memcpy(out + at, &value, sizeof(value));
    }
    return at;
}

uint32_t dat_event(uint8_t out[DAT_EVENT_MOST], const struct trace_file *f,
                   const struct trace_event *e)
{
    const struct dat_linux_event *l = dat_linux_event(e);
    struct common c = { .type = (uint16_t)(l ? LINUX_ID(l) : OWN_ID(e->type)),
                        .pid = (int32_t)e->thread };
    uint32_t bytes;

    if (!trace_type_fields(e->type))
        return 0;
    memset(out, 0, DAT_EVENT_MOST);
    memcpy(out, &c, sizeof(c));
    if (l)
        return put_values(out, sizeof(c), l->fields, f, e);
    bytes = trace_fields_bytes(trace_type_fields(e->type));
    memcpy(out + sizeof(c), e->fields, bytes);
    return (uint32_t)(sizeof(c) + bytes + 3) / 4 * 4;
}

// The text is where `text` says: Documentation/trace/events.rst has nothing of
// this; include/trace/stages/ of Linux, __data_loc: the offset, and above it
// the bytes with the NUL.
struct sensed {
    struct common c;
    uint32_t text;
};

uint32_t dat_sensed(uint8_t out[DAT_SENSED_MOST], const struct trace_file *f,
                    const struct recorded *one)
{
    struct sensed d = { .c = { .type = SENSED_ID } };
    char *text = (char *)out + sizeof(d), name[SENSED_NAME_BYTES];
    size_t room = DAT_SENSED_MOST - sizeof(d);
    uint32_t thread = 0, cpu;

    memset(out, 0, DAT_SENSED_MOST);
    sensed_thread(one, &thread, &cpu);
    d.c.pid = (int32_t)thread;
    sensed_name(sensed_sensor(f, one), name);
    char *made = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&made, &bytes);
    if (to) {
        fputs(name, to);
        sensed_text(to, f, one);
        fclose(to);
        if (bytes < room)
            strcpy(text, made);
        else
            snprintf(text, room, "%.*s...", (int)room - 4, made);
    }
    free(made);
    bytes = strlen(text) + 1;
    d.text = (uint32_t)(bytes << 16 | sizeof(d));
    memcpy(out, &d, sizeof(d));
    return (uint32_t)(sizeof(d) + bytes + 3) / 4 * 4;
}

// --- formats ----------------------------------------------------------------

static void put_field(FILE *out, const char *declaration, size_t offset,
                      size_t size, bool is_signed)
{
    fprintf(out, "\tfield:%s;\toffset:%zu;\tsize:%zu;\tsigned:%d;\n",
            declaration, offset, size, is_signed);
}

static void begin_format(FILE *out, const char *name, uint32_t id)
{
    fprintf(out, "name: %s\nID: %" PRIu32 "\nformat:\n", name, id);
    put_field(out, "unsigned short common_type", offsetof(struct common, type),
              sizeof(uint16_t), false);
    put_field(out, "unsigned char common_flags", offsetof(struct common, flags),
              sizeof(uint8_t), false);
    put_field(out, "unsigned char common_preempt_count",
              offsetof(struct common, preempt_count), sizeof(uint8_t), false);
    put_field(out, "int common_pid", offsetof(struct common, pid),
              sizeof(int32_t), true);
    fputc('\n', out);
}

static void put_calls(FILE *out)
{
    const char *name;
    uint32_t number;

    fputs(", __print_symbolic(REC->id", out);
    for (uint32_t n = 0; (name = trace_nth_call(n, &number)); n++)
        fprintf(out, ", { %" PRIu32 ", \"%s\" }", number, name);
    fputc(')', out);
}

static void put_linux(FILE *out, const void *arg)
{
    const struct dat_linux_event *l = arg;
    size_t offset = sizeof(struct common);

    begin_format(out, l->name, LINUX_ID(l));
    for (const struct dat_field *f = l->fields; f->declaration; f++) {
        put_field(out, f->declaration, offset, f->bytes, f->is_signed);
        offset += f->bytes;
    }
    fprintf(out, "\nprint fmt: %s", l->print);
    if (l->names_call)
        put_calls(out);
    fputc('\n', out);
}

// Its name has no '/': that is between a system and an event.
static void put_type(FILE *out, const void *arg)
{
    uint32_t type = *(const uint32_t *)arg;
    const char *name = trace_point_name(type), *fields, *next;
    struct trace_field f;
    size_t offset = sizeof(struct common);
    char text[64];

    snprintf(text, sizeof(text), "%.*s_%s", (int)strcspn(name, "/"), name,
             strchr(name, '/') + 1);
    begin_format(out, text, OWN_ID(type));
    fields = next = trace_type_fields(type);
    for (; trace_point_field(&next, &f); offset += f.bits / 8) {
        snprintf(text, sizeof(text), "u%" PRIu32 " %.*s", f.bits, (int)f.length,
                 f.name);
        put_field(out, text, offset, f.bits / 8, false);
    }
    fputs("\nprint fmt: \"", out);
    for (next = fields; trace_point_field(&next, &f);)
        fprintf(out, "%s%.*s=%s", f.name == fields + 1 ? "" : " ",
                (int)f.length, f.name,
                trace_field_is_address(&f) ? "0x%x"
                : f.bits == 64             ? "%llu"
                                           : "%u");
    fputc('"', out);
    for (next = fields; trace_point_field(&next, &f);)
        fprintf(out, ", REC->%.*s", (int)f.length, f.name);
    fputc('\n', out);
}

static void put_sensed(FILE *out, const void *arg)
{
    (void)arg;
    begin_format(out, "sensor", SENSED_ID);
    put_field(out, "__data_loc char[] text", offsetof(struct sensed, text), 4,
              true);
    fputs("\nprint fmt: \"%s\", __get_str(text)\n", out);
}

// --- the section ------------------------------------------------------------

void dat_put_number(FILE *out, uint64_t n, uint32_t bytes)
{
    fwrite(&n, 1, bytes, out);
}

size_t dat_put_made(FILE *out, uint32_t size_bytes,
                    void (*put)(FILE *made, const void *arg), const void *arg)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *made = open_memstream(&bytes, &size);

    if (made) {
        put(made, arg);
        if (fclose(made) != 0)
            size = 0;
    }
    dat_put_number(out, size, size_bytes);
    fwrite(bytes, 1, size, out);
    free(bytes);
    return size;
}

static void begin_system(FILE *out, const char *name, uint32_t events)
{
    fwrite(name, 1, strlen(name) + 1, out);
    dat_put_number(out, events, 4);
}

static size_t events_of(const struct dat_linux_event *first)
{
    size_t n = 1;

    while (first[n].name && strcmp(first[n].system, first->system) == 0)
        n++;
    return n;
}

static uint32_t linux_systems(void)
{
    const struct dat_linux_event *l = dat_linux_events;
    uint32_t n = 0;

    for (; l->name; l += events_of(l))
        n++;
    return n;
}

static void put_linux_system(FILE *out, const struct dat_linux_event *first)
{
    size_t events = events_of(first);

    begin_system(out, first->system, (uint32_t)events);
    for (size_t i = 0; i < events; i++)
        dat_put_made(out, 8, put_linux, first + i);
}

static bool is_own(uint32_t type)
{
    return trace_type_fields(type) && !dat_type_is_linux(type);
}

static void put_own_system(FILE *out)
{
    uint32_t own = 0;

    for (uint32_t i = 0; i < 1u << TRACE_TYPE_BITS; i++)
        own += is_own(i);
    begin_system(out, "strobe", own + 1);
    dat_put_made(out, 8, put_sensed, NULL);
    for (uint32_t i = 0; i < 1u << TRACE_TYPE_BITS; i++) {
        if (is_own(i))
            dat_put_made(out, 8, put_type, &i);
    }
}

void dat_put_formats(FILE *out)
{
    const struct dat_linux_event *l = dat_linux_events;

    dat_put_number(out, linux_systems() + 1, 4);
    for (; l->name; l += events_of(l))
        put_linux_system(out, l);
    put_own_system(out);
}
