// Recordings of sensors as text, JSON or CSV, merged in the order of time.
#include "sensor_recording.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/libstrobe/core_clock.h"
#include "user/libstrobe/sensor_print.h"
#include "user/libstrobe/strobe.h"

static const struct recorded_sensor *sensor_of(const struct recording *r,
                                               const struct recorded *one)
{
    return &r->sensors[one->source];
}

static uint64_t number(struct sensor_wide w)
{
    return (uint64_t)w.high << 32 | w.low;
}

static const struct recording_cell *
cells_of(const struct recording_histogram *h)
{
    return (const void *)(h + 1);
}

// A cell's layer, least y and least x.
static void place_of(const struct sensor_histogram_layout *h, uint32_t cell,
                     uint32_t place[3])
{
    uint32_t rows = h->y.bins ? h->y.bins : 1;
    uint32_t row = cell / h->x.bins;

    place[0] = row / rows;
    place[1] = h->y.bins ? sensor_bin_start(&h->y, row % rows) : 0;
    place[2] = sensor_bin_start(&h->x, cell % h->x.bins);
}

// --- text -------------------------------------------------------------------

static void text_head(FILE *out, const struct recording *r, uint64_t window)
{
    double ms = (double)r->interval_ns / 1e6;

    fprintf(out, "%" PRIu32 " samples in %.6f s, each %g ms", r->samples,
            (double)(r->last_ns - r->first_ns) / 1e9, ms);
    fputs(r->ended ? "" : "; it did not end as asked: cut off", out);
    fputc('\n', out);
    core_clock_print(
        out, &(struct strobe_core_clock){ .tsc_error_ppm = r->tsc_error_ppm },
        r->tsc_hz);
    if (r->cut_off)
        fprintf(out, "The last %zu bytes are no whole chunk.\n", r->cut_off);
    if (r->unknown)
        fprintf(out, "%zu chunks are not understood.\n", r->unknown);
    fprintf(out,
            "In the order of the TSC; a list's neighbours are at most %" PRIu64
            " cycles out of it.\n",
            window);
}

static void text_value(FILE *out, const struct recording *r,
                       const struct recorded *one)
{
    const struct recording_scalar *s = one->body;
    const struct recording_histogram *h = one->body;
    const struct recording_loss *l = one->body;
    const char *text = sensor_of(r, one)->text;

    switch (one->kind) {
    case RECORDING_SCALAR:
        fprintf(out, "%" PRIu64 "\n", number(s->value));
        break;
    case RECORDING_HISTOGRAM:
        fprintf(out,
                "sum %" PRIu64 ", least %" PRIu32 ", most %" PRIu32
                ", under %" PRIu64 ", over %" PRIu64 ", %" PRIu32
                " cells changed\n",
                number(h->sum), h->least, h->most, number(h->under),
                number(h->over), h->cells);
        break;
    case RECORDING_EVENT:
        sensor_print_event(out, text,
                           ((const struct recording_event *)one->body)->number,
                           recorded_event(one), false);
        break;
    case RECORDING_RECORD:
        sensor_print_record(out, text, recorded_record(one), false);
        break;
    case RECORDING_LOSS:
        fprintf(out, "lost %" PRIu64 ", spoilt %" PRIu64 "\n", number(l->lost),
                number(l->spoilt));
        break;
    default:
        break;
    }
}

static void text_one(FILE *out, const struct recording *r,
                     const struct recorded *one)
{
    fprintf(out, "%12.6f ", recording_seconds(r, one->tsc));
    put_printable(out, sensor_of(r, one)->path);
    fputc(' ', out);
    text_value(out, r, one);
}

// A histogram's last state, as memory with one lane.
static void fill(struct sensor_lane *lane, const struct recording *r,
                 uint32_t source)
{
    bool layers = r->sensors[source].layout.histogram.layers;

    for (size_t i = 0; i < r->count; i++) {
        const struct recording_histogram *h = r->all[i].body;
        if (r->all[i].kind != RECORDING_HISTOGRAM || h->source != source)
            continue;
        lane->sum = sensor_count_of(number(h->sum));
        lane->under = sensor_count_of(number(h->under));
        lane->over = sensor_count_of(number(h->over));
        lane->max = h->most;
        lane->not_min = ~h->least;
        for (uint32_t j = 0; j < h->cells; j++) {
            const struct recording_cell *c = &cells_of(h)[j];
            lane->cells[layers ? 2 * c->cell : c->cell] =
                sensor_count_of(number(c->count));
            if (layers)
                lane->cells[2 * c->cell + 1] = sensor_count_of(number(c->cost));
        }
    }
}

static void text_histogram(FILE *out, const struct recording *r,
                           uint32_t source)
{
    const struct recorded_sensor *s = &r->sensors[source];
    struct sensor_view v = { .header = { .layout = s->layout,
                                         .owner = s->owner } };

    v.header.layout.histogram.lanes = 1;
    v.lane_bytes = (uint32_t)sensor_lane_bytes(&v.header.layout.histogram);
    struct sensor_lane *lane = calloc(1, v.lane_bytes);
    if (!lane)
        return;
    fill(lane, r, source);
    strcpy(v.header.text, s->text); // shorter: recording_open has checked it
    v.data = lane;
    sensor_print(out, s->path, &v);
    free(lane);
}

static void print_text(FILE *out, struct recording *r)
{
    text_head(out, r, recording_merge(r));
    for (size_t i = 0; i < r->count; i++)
        text_one(out, r, &r->all[i]);
    for (uint32_t i = 0; i < r->sensor_count; i++) {
        if (r->sensors[i].layout.type == SENSOR_HISTOGRAM)
            text_histogram(out, r, i);
    }
}

// --- JSON: an object a line --------------------------------------------------

static void json_cells(FILE *out, const struct recorded_sensor *s,
                       const struct recording_histogram *h)
{
    fprintf(out,
            "\"sum\": %" PRIu64 ", \"least\": %" PRIu32 ", \"most\": %" PRIu32
            ", \"under\": %" PRIu64 ", \"over\": %" PRIu64 ", \"cells\": [",
            number(h->sum), h->least, h->most, number(h->under),
            number(h->over));
    for (uint32_t i = 0; i < h->cells; i++) {
        const struct recording_cell *c = &cells_of(h)[i];
        uint32_t place[3];
        place_of(&s->layout.histogram, c->cell, place);
        fprintf(out,
                "%s[%" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu64
                ", %" PRIu64 "]",
                i ? ", " : "", place[0], place[1], place[2], number(c->count),
                number(c->cost));
    }
    fputc(']', out);
}

static void json_value(FILE *out, const struct recording *r,
                       const struct recorded *one)
{
    const struct recorded_sensor *s = sensor_of(r, one);
    const struct recording_loss *l = one->body;

    switch (one->kind) {
    case RECORDING_SCALAR:
        fprintf(out, "\"value\": %" PRIu64,
                number(((const struct recording_scalar *)one->body)->value));
        break;
    case RECORDING_HISTOGRAM:
        json_cells(out, s, one->body);
        break;
    case RECORDING_EVENT:
        fputs("\"event\": ", out);
        sensor_print_event(out, s->text,
                           ((const struct recording_event *)one->body)->number,
                           recorded_event(one), true);
        break;
    case RECORDING_RECORD:
        fputs("\"event\": ", out);
        sensor_print_record(out, s->text, recorded_record(one), true);
        break;
    case RECORDING_LOSS:
        fprintf(out, "\"lost\": %" PRIu64 ", \"spoilt\": %" PRIu64,
                number(l->lost), number(l->spoilt));
        break;
    default:
        break;
    }
}

static void json_sensor(FILE *out, const struct recorded_sensor *s)
{
    fputs("{\"path\": ", out);
    json_string(out, s->path, strlen(s->path));
    fprintf(out, ", \"type\": \"%s\", \"owner\": %" PRIu32 ", \"text\": ",
            sensor_type_text(s->layout.type), s->owner);
    json_string(out, s->text, strlen(s->text));
    fputs("}\n", out);
}

static void print_json(FILE *out, struct recording *r)
{
    uint64_t window = recording_merge(r);

    fprintf(out,
            "{\"samples\": %" PRIu32 ", \"interval_ns\": %" PRIu64
            ", \"ns\": %" PRIu64 ", \"tsc_hz\": %" PRIu64
            ", \"tsc_error_ppm\": %" PRIu32 ", \"ended\": %s, \"cut_off\": "
            "%zu, \"unknown\": %zu, \"window_cycles\": %" PRIu64 "}\n",
            r->samples, r->interval_ns, r->last_ns - r->first_ns, r->tsc_hz,
            r->tsc_error_ppm, r->ended ? "true" : "false", r->cut_off,
            r->unknown, window);
    for (uint32_t i = 0; i < r->sensor_count; i++)
        json_sensor(out, &r->sensors[i]);
    for (size_t i = 0; i < r->count; i++) {
        fprintf(out, "{\"seconds\": %.9f, \"path\": ",
                recording_seconds(r, r->all[i].tsc));
        const char *path = sensor_of(r, &r->all[i])->path;
        json_string(out, path, strlen(path));
        fputs(", ", out);
        json_value(out, r, &r->all[i]);
        fputs("}\n", out);
    }
}

// --- CSV: a row for each number ----------------------------------------------

// RFC 4180, 2: quotation marks around it, those in it are doubled.
static void csv_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

// The begin of a row: time, sensor, number of the event, name of the value.
static void csv_row(FILE *out, const struct recording *r,
                    const struct recorded *one, const char *event,
                    const char *name)
{
    fprintf(out, "%.9f,", recording_seconds(r, one->tsc));
    csv_string(out, sensor_of(r, one)->path);
    fprintf(out, ",%s,%s,", event, name);
}

static void csv_number(FILE *out, const struct recording *r,
                       const struct recorded *one, const char *name,
                       uint64_t value)
{
    csv_row(out, r, one, "", name);
    fprintf(out, "%" PRIu64 "\n", value);
}

static void csv_cells(FILE *out, const struct recording *r,
                      const struct recorded *one)
{
    const struct sensor_histogram_layout *h =
        &sensor_of(r, one)->layout.histogram;
    const struct recording_histogram *values = one->body;
    uint32_t place[3];
    char name[64];

    csv_number(out, r, one, "sum", number(values->sum));
    csv_number(out, r, one, "under", number(values->under));
    csv_number(out, r, one, "over", number(values->over));
    for (uint32_t i = 0; i < values->cells; i++) {
        const struct recording_cell *c = &cells_of(values)[i];
        place_of(h, c->cell, place);
        snprintf(name, sizeof(name), "count %" PRIu32 " %" PRIu32 " %" PRIu32,
                 place[0], place[1], place[2]);
        csv_number(out, r, one, name, number(c->count));
        if (h->layers) {
            snprintf(name, sizeof(name),
                     "cost %" PRIu32 " %" PRIu32 " %" PRIu32, place[0],
                     place[1], place[2]);
            csv_number(out, r, one, name, number(c->cost));
        }
    }
}

static void csv_event(FILE *out, const struct recording *r,
                      const struct recorded *one, uint32_t which, uint32_t type,
                      const void *payload, uint32_t size)
{
    const char *fields, *text = sensor_of(r, one)->text;
    char name[SENSOR_FIELD_NAME], event[16];
    struct sensor_field f;
    uint32_t at = 0;

    snprintf(event, sizeof(event), "%" PRIu32, which);
    csv_row(out, r, one, event, "type");
    fprintf(out, "%" PRIu32 "\n", type);
    fields = sensor_find_type(text, type, name);
    while (fields && sensor_next_field(&fields, &f) && f.bytes <= size - at) {
        uint64_t value = sensor_field_value(&f, (const uint8_t *)payload + at);
        csv_row(out, r, one, event, f.name);
        fprintf(out, f.is_signed ? "%" PRId64 "\n" : "%" PRIu64 "\n", value);
        at += f.bytes;
    }
}

static void csv_one(FILE *out, const struct recording *r,
                    const struct recorded *one)
{
    const struct recording_loss *l = one->body;
    const struct recording_event *e = one->body;

    switch (one->kind) {
    case RECORDING_SCALAR:
        csv_number(out, r, one, "value",
                   number(((const struct recording_scalar *)one->body)->value));
        break;
    case RECORDING_HISTOGRAM:
        csv_cells(out, r, one);
        break;
    case RECORDING_EVENT:
        csv_event(out, r, one, e->number, recorded_event(one)->type,
                  recorded_event(one)->payload, recorded_event(one)->bytes);
        break;
    case RECORDING_RECORD:
        csv_event(out, r, one, recorded_record(one)->number,
                  recorded_record(one)->type, recorded_record(one)->payload,
                  recorded_record(one)->size -
                      (uint32_t)sizeof(struct sensor_record));
        break;
    case RECORDING_LOSS:
        csv_number(out, r, one, "lost", number(l->lost));
        csv_number(out, r, one, "spoilt", number(l->spoilt));
        break;
    default:
        break;
    }
}

void recording_print(FILE *out, struct recording *r,
                     enum recording_format format)
{
    if (format == RECORDING_TEXT) {
        print_text(out, r);
    } else if (format == RECORDING_JSON) {
        print_json(out, r);
    } else {
        recording_merge(r);
        fputs("seconds,sensor,event,name,value\n", out);
        for (size_t i = 0; i < r->count; i++)
            csv_one(out, r, &r->all[i]);
    }
}
