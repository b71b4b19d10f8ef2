// Sensors in the Common Trace Format: a stream sensor_N for each, whose id is N
// + 1. The packets' context has N where that of a CPU has the CPU.
//
// An event: u16 id, u64 TSC; of a list: u32 thread, its name, u8 CPU; and what
// its class says:
//
//     lists, rings   the type's fields, as the sensor's description has them;
//     or,
//                    if the payload's size is not that of these, the class
//                    `other`: u16 type, u16 bytes, and the bytes
//     scalars        u64 value
//     histograms     u64 sum, u32 least and most, of all values so far
//
// What was lost or spoilt is discarded.
#include "trace_ctf.h"

#include "user/libtrace/sensed.h"

#include <inttypes.h>
#include <string.h>

#define OTHER 65535u // the class's id, which no described type has
#define NAMES_MAX (SENSOR_TEXT_MAX / 6) // of fields: "a, u8\n"
// Without the payload: id, time, thread, name, CPU, type, bytes.
#define EVENT_EXTRA (2 + 8 + 4 + 32 + 1 + 2 + 2)

// The bytes of the fields that the description names. 0: it has none.
static uint32_t described_bytes(const struct recorded_sensor *s, uint32_t type)
{
    char name[SENSOR_FIELD_NAME];
    struct sensor_field field;
    const char *at = sensor_find_type(s->text, type, name);
    uint32_t bytes = 0;

    while (at && sensor_next_field(&at, &field))
        bytes += field.bytes;
    return bytes;
}

// --- events -----------------------------------------------------------------

static void put_head(struct ctf *c, struct ctf_stream *s,
                     const struct recorded *one, uint16_t id, uint32_t payload)
{
    uint64_t time = ctf_begin_event(c, s, one->tsc, EVENT_EXTRA + payload);
    uint32_t thread, cpu;
    char name[32];

    ctf_add(s, &id, sizeof(id));
    ctf_add(s, &time, sizeof(time));
    if (!sensed_thread(one, &thread, &cpu))
        return;
    trace_file_thread(c->file, thread, name);
    ctf_add(s, &thread, sizeof(thread));
    ctf_add(s, name, strlen(name) + 1);
    ctf_add(s, &cpu, 1);
}

static void put_payload(struct ctf *c, struct ctf_stream *s,
                        const struct recorded *one)
{
    uint32_t bytes, type = sensed_type(one);
    const void *payload = sensed_payload(one, &bytes);
    uint16_t head[2] = { (uint16_t)type, (uint16_t)bytes };

    if (type != OTHER &&
        described_bytes(sensed_sensor(c->file, one), type) == bytes) {
        s->types[type / 8] |= (uint8_t)(1u << type % 8);
        put_head(c, s, one, (uint16_t)type, bytes);
    } else {
        s->others = true;
        put_head(c, s, one, OTHER, bytes);
        ctf_add(s, head, sizeof(head));
    }
    ctf_add(s, payload, bytes);
}

static void put_value(struct ctf *c, struct ctf_stream *s,
                      const struct recorded *one, uint64_t value)
{
    const struct recording_histogram *h = one->body;
    uint32_t limits[2];

    put_head(c, s, one, 0, sizeof(value) + sizeof(limits));
    ctf_add(s, &value, sizeof(value));
    if (one->kind != RECORDING_HISTOGRAM)
        return;
    limits[0] = h->least;
    limits[1] = h->most;
    ctf_add(s, limits, sizeof(limits));
}

void ctf_on_sensed(void *arg, const struct recorded *one)
{
    struct ctf *c = arg;
    struct ctf_stream *s =
        ctf_stream_of(c, &c->sensors[one->source], "sensor", one->source,
                      CTF_SENSORS + one->source, one->tsc);
    uint64_t a, b;

    if (!s || !s->out)
        return;
    if (sensed_loss(one, &a, &b))
        ctf_lose(c, s, one->tsc, a + b);
    else if (sensed_value(one, &a))
        put_value(c, s, one, a);
    else
        put_payload(c, s, one);
}

// --- metadata ---------------------------------------------------------------

static void put_stream(const struct ctf_stream *s, FILE *out, bool is_list)
{
    fprintf(out,
            "stream {\n"
            "\tid = %" PRIu32 ";\n"
            "\tpacket.context := struct {\n"
            "\t\ttsc_t timestamp_begin; tsc_t timestamp_end;\n"
            "\t\tuint64_t content_size; uint64_t packet_size;\n"
            "\t\tuint64_t events_discarded; uint32_t sensor;\n"
            "\t};\n"
            "\tevent.header := struct { uint16_t id; tsc_t timestamp; };\n",
            s->id);
    if (is_list)
        fputs("\tevent.context := struct { uint32_t _thread; string _name; "
              "uint8_t _cpu; };\n",
              out);
    fputs("};\n", out);
}

static void begin_class(const struct ctf_stream *s, FILE *out, uint32_t id,
                        const char *name)
{
    fprintf(out, "event {\n\tid = %" PRIu32 "; name = ", id);
    ctf_put_string(out, name);
    fprintf(out, "; stream_id = %" PRIu32 ";\n\tfields := struct {", s->id);
}

// A field's name: what the language does not allow in it is _; one that another
// field has, too, has a name by its place.
static void put_name(FILE *out, const struct sensor_field *field,
                     uint32_t place, char names[][SENSOR_FIELD_NAME])
{
    char *name = names[place];
    bool again = false;

    strcpy(name, field->name);
    for (char *p = name; *p; p++)
        *p = *p == '-' || *p == '.' ? '_' : *p;
    for (uint32_t i = 0; i < place; i++)
        again |= strcmp(names[i], name) == 0;
    if (again)
        fprintf(out, " field_%" PRIu32 ";", place);
    else
        fprintf(out, " _%s;", name);
}

static void put_type(const struct ctf_stream *s, const char *sensor,
                     const char *text, FILE *out, uint32_t type)
{
    static char names[NAMES_MAX][SENSOR_FIELD_NAME];
    char name[SENSOR_FIELD_NAME], both[SENSED_NAME_BYTES + SENSOR_FIELD_NAME];
    struct sensor_field field;
    const char *at = sensor_find_type(text, type, name);

    snprintf(both, sizeof(both), "%s:%s", sensor, name);
    begin_class(s, out, type, both);
    for (uint32_t n = 0; n < NAMES_MAX && sensor_next_field(&at, &field); n++) {
        fprintf(out, " %sint%" PRIu32 "_t", field.is_signed ? "" : "u",
                field.bytes * 8);
        put_name(out, &field, n, names);
    }
    fputs(" };\n};\n", out);
}

static void put_other(const struct ctf_stream *s, const char *sensor, FILE *out)
{
    char name[SENSED_NAME_BYTES + 8];

    snprintf(name, sizeof(name), "%s:other", sensor);
    begin_class(s, out, OTHER, name);
    fputs(" uint16_t _type; uint16_t _bytes; uint8_t _payload[_bytes]; "
          "};\n};\n",
          out);
}

void ctf_put_sensor_names(const struct trace_file *f, FILE *out)
{
    char name[SENSED_NAME_BYTES];

    for (uint32_t i = 0; i < f->sensors.sensor_count; i++) {
        sensed_name(&f->sensors.sensors[i], name);
        fprintf(out, "\tsensor_%" PRIu32 " = ", i);
        ctf_put_string(out, name);
        fputs(";\n", out);
    }
}

static void put_classes(const struct ctf_stream *s,
                        const struct recorded_sensor *r, FILE *out)
{
    uint32_t kind = r->layout.type;
    char name[SENSED_NAME_BYTES];

    sensed_name(r, name);
    put_stream(s, out, kind == SENSOR_LIST);
    for (uint32_t type = 0; type < OTHER; type++) {
        if (s->types[type / 8] & 1u << type % 8)
            put_type(s, name, r->text, out, type);
    }
    if (s->others)
        put_other(s, name, out);
    if (kind != SENSOR_SCALAR && kind != SENSOR_HISTOGRAM)
        return;
    begin_class(s, out, 0, name);
    fputs(kind == SENSOR_SCALAR
              ? " uint64_t _value; };\n};\n"
              : " uint64_t _sum; uint32_t _least; uint32_t _most; };\n};\n",
          out);
}

void ctf_put_sensors(const struct ctf *c, FILE *out)
{
    const struct recording *r = &c->file->sensors;

    fputs(r->sensor_count
              ? "typealias integer { size = 32; align = 8; signed = true; } := "
                "int32_t;\n"
                "typealias integer { size = 64; align = 8; signed = true; } := "
                "int64_t;\n"
              : "",
          out);
    for (uint32_t i = 0; i < r->sensor_count; i++) {
        if (c->sensors[i])
            put_classes(c->sensors[i], &r->sensors[i], out);
    }
}
