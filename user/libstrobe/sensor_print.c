// The content of sensors. The owner may write anything: what is printed of its
// texts is sanitised, and events that are none are counted.
#include "sensor_print.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/libstrobe/strobe.h"

#define BAR_COLUMNS 40
#define MEAN_SCALE 1000 // means are in thousandths

// --- files

const char *sensor_file_open(struct sensor_file *f, const char *path)
{
    struct stat st;
    const char *problem;

    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return strerror(errno);
    f->memory = MAP_FAILED;
    if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        st.st_size <= (off_t)(SENSOR_DATA + SENSOR_TRACE_BYTES_MAX)) {
        f->size = (size_t)st.st_size;
        f->memory = mmap(NULL, f->size, PROT_READ, MAP_SHARED, f->fd, 0);
    }
    if (f->memory == MAP_FAILED) {
        close(f->fd);
        return "it is not a sensor, or has no type yet";
    }
    problem = sensor_view_init(&f->view, f->memory, f->size);
    if (problem)
        sensor_file_close(f);
    return problem;
}

void sensor_file_close(struct sensor_file *f)
{
    munmap(f->memory, f->size);
    close(f->fd);
}

// --- events

static void print_field(FILE *out, const struct sensor_field *f, uint64_t value)
{
    if (f->is_signed)
        fprintf(out, "%" PRId64, (int64_t)value);
    else
        fprintf(out, "%" PRIu64, value);
}

void sensor_print_fields(FILE *out, const char *text, uint32_t type,
                         const void *bytes, uint32_t size, bool json)
{
    const uint8_t *payload = bytes;
    const char *separator = json ? "" : " ";
    char name[SENSOR_FIELD_NAME];
    struct sensor_field field;
    uint32_t at = 0;
    const char *fields = sensor_find_type(text, type, name);

    if (fields)
        fprintf(out, json ? ", \"event\": \"%s\", \"fields\": {" : " %s", name);
    else if (!json)
        fprintf(out, " type %" PRIu32, type);
    while (fields && sensor_next_field(&fields, &field) &&
           field.bytes <= size - at) {
        fprintf(out, json ? "%s\"%s\": " : "%s%s=", separator, field.name);
        separator = json ? ", " : " ";
        print_field(out, &field, sensor_field_value(&field, payload + at));
        at += field.bytes;
    }
    if (json) {
        fputs(fields ? "}" : "", out);
    } else {
        for (; size - at >= 4; at += 4) {
            uint32_t word;
            memcpy(&word, payload + at, sizeof(word));
            fprintf(out, " %08" PRIx32, word);
        }
    }
}

void sensor_print_event(FILE *out, const char *text, uint32_t number,
                        const struct sensor_event *e, bool json)
{
    uint64_t time = sensor_wide_read(&e->time);

    fprintf(out,
            json ? "{\"number\": %" PRIu32 ", \"time\": %" PRIu64
                   ", \"cpu\": %u, \"thread\": %" PRIu32 ", \"type\": %u"
                 : "%8" PRIu32 " %" PRIu64 " CPU %u thread %" PRIu32,
            number, time, e->cpu, e->thread, e->type);
    sensor_print_fields(out, text, e->type, e->payload, e->bytes, json);
    fputs(json ? "}" : "\n", out);
}

void sensor_print_record(FILE *out, const char *text,
                         const struct sensor_record *r, bool json)
{
    fprintf(out,
            json ? "{\"number\": %" PRIu32 ", \"time\": %" PRIu64
                   ", \"type\": %u"
                 : "%8" PRIu32 " %" PRIu64,
            r->number, sensor_wide_read(&r->time), r->type);
    sensor_print_fields(out, text, r->type, r->payload,
                        r->size - (uint32_t)sizeof(*r), json);
    fputs(json ? "}" : "\n", out);
}

static void print_losses(FILE *out, uint32_t next, uint64_t lost,
                         uint64_t spoilt, bool json)
{
    fprintf(out,
            json ? "], \"next\": %" PRIu32 ", \"lost\": %" PRIu64
                   ", \"spoilt\": %" PRIu64
                 : "next number %" PRIu32 ", lost %" PRIu64 ", spoilt %" PRIu64
                   "\n",
            next, lost, spoilt);
}

static void print_list(FILE *out, const struct sensor_view *v, bool json)
{
    union {
        struct sensor_event event;
        uint32_t words[SENSOR_SLOT_BYTES_MAX / 4];
    } e;
    struct sensor_cursor c;

    sensor_cursor_begin(&c, v);
    if (json)
        fputs(", \"events\": [", out);
    // One round: a fast writer must not keep the reader here.
    for (uint32_t i = 0; i < v->header.layout.list.slots; i++) {
        memset(&e, 0, sizeof(e));
        if (!sensor_cursor_next(&c, v, true, &e.event))
            break;
        if (json && i)
            fputs(", ", out);
        sensor_print_event(out, v->header.text, c.next - 1, &e.event, json);
    }
    print_losses(out, c.next, c.lost, c.spoilt + c.jumps, json);
}

// One that was lost is a line of its own, where it happened.
static void print_ring(FILE *out, const struct sensor_view *v, bool json)
{
    static union {
        struct sensor_record record;
        uint8_t bytes[SENSOR_RECORD_MAX];
    } r;
    struct sensor_ring_cursor c;
    uint64_t lost = 0;
    uint32_t most = sensor_ring_records_max(v);
    bool closed = sensor_wide_read(&v->header.closed_ns);

    sensor_ring_cursor_begin(&c, v);
    if (json)
        fputs(", \"records\": [", out);
    // One round: a fast writer must not keep the reader here.
    for (uint32_t i = 0; i < most; i++) {
        if (!sensor_ring_cursor_next(&c, v, closed, &r.record))
            break;
        if (json && i)
            fputs(", ", out);
        if (!json && c.lost > lost)
            fprintf(out, "%8s lost: %" PRIu64 "\n", "", c.lost - lost);
        lost = c.lost;
        sensor_print_record(out, v->header.text, &r.record, json);
    }
    print_losses(out, c.next, c.lost, c.spoilt, json);
}

// --- histograms

static uint64_t greatest(const struct sensor_view *v)
{
    uint64_t most = 1;

    for (uint32_t x = 0; x < v->header.layout.histogram.x.bins; x++) {
        uint64_t count = sensor_view_cell(v, 0, 0, x, NULL);
        if (count > most)
            most = count;
    }
    return most;
}

static void print_cell(FILE *out, const struct sensor_view *v,
                       const uint32_t place[3], uint64_t most, bool json)
{
    const struct sensor_histogram_layout *h = &v->header.layout.histogram;
    uint32_t x = sensor_bin_start(&h->x, place[2]);
    uint32_t y = h->y.bins ? sensor_bin_start(&h->y, place[1]) : 0;
    uint64_t cost,
        count = sensor_view_cell(v, place[0], place[1], place[2], &cost);

    if (json) {
        fprintf(out,
                "[%" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu64 ", %" PRIu64
                "]",
                place[0], y, x, count, cost);
        return;
    }
    if (h->layers)
        fprintf(out, "layer %" PRIu32 " ", place[0]);
    fprintf(out, "%10" PRIu32 " %10" PRIu64, x, count);
    if (h->layers)
        fprintf(out, " cost %" PRIu64, cost);
    if (!h->layers) {
        unsigned length = (unsigned)(count * BAR_COLUMNS / most);
        // The owner writes at the same time.
        if (length > BAR_COLUMNS)
            length = BAR_COLUMNS;
        fputc(' ', out);
        while (length--)
            fputc('#', out);
    }
    fputc('\n', out);
}

static void print_cells(FILE *out, const struct sensor_view *v, bool json)
{
    const struct sensor_histogram_layout *h = &v->header.layout.histogram;
    uint64_t most = greatest(v);
    const char *separator = "";
    uint32_t p[3];

    for (p[0] = 0; p[0] < sensor_layers(v); p[0]++) {
        for (p[1] = 0; p[1] < sensor_rows(v); p[1]++) {
            for (p[2] = 0; p[2] < h->x.bins; p[2]++) {
                if (!sensor_view_cell(v, p[0], p[1], p[2], NULL))
                    continue;
                fputs(separator, out);
                print_cell(out, v, p, most, json);
                separator = json ? ", " : "";
            }
        }
    }
}

// --- heat maps: two dimensions, a line for each row that is not empty

static uint32_t columns_of(const struct sensor_view *v)
{
    uint32_t bins = v->header.layout.histogram.x.bins;

    return bins < SENSOR_HEAT_COLUMNS ? bins : SENSOR_HEAT_COLUMNS;
}

struct sensor_heat sensor_heat_of(const struct sensor_view *v, uint32_t layer,
                                  uint32_t row)
{
    bool means = v->header.layout.histogram.layers > 0;
    uint32_t bins = v->header.layout.histogram.x.bins;
    uint64_t costs[SENSOR_HEAT_COLUMNS] = { 0 }, cost;
    struct sensor_heat heat = { .most = 0 };

    for (uint32_t x = 0; x < bins; x++) {
        uint32_t column = (uint32_t)((uint64_t)x * columns_of(v) / bins);
        heat.columns[column] += sensor_view_cell(v, layer, row, x, &cost);
        costs[column] += cost;
    }
    for (uint32_t i = 0; i < columns_of(v); i++) {
        uint64_t *value = &heat.columns[i];
        if (means && *value > 0)
            *value = (uint64_t)((double)MEAN_SCALE * costs[i] / *value + 0.5);
        heat.most = *value > heat.most ? *value : heat.most;
    }
    heat.top = heat.most;
    return heat;
}

void sensor_print_heat(FILE *out, const struct sensor_view *v,
                       const struct sensor_heat *heat, uint32_t label)
{
    static const char shades[] = ".:-=+*#%@";
    uint64_t top = heat->top ? heat->top : 1;

    fprintf(out, "%10" PRIu32 " |", label);
    for (uint32_t i = 0; i < columns_of(v); i++) {
        uint64_t value = heat->columns[i];
        size_t shade = (size_t)(value * (sizeof(shades) - 2) / top);
        fputc(value ? shades[shade] : ' ', out);
    }
    if (v->header.layout.histogram.layers)
        fprintf(out, "| at most %.3f\n", (double)heat->most / MEAN_SCALE);
    else
        fprintf(out, "| at most %" PRIu64 "\n", heat->most);
}

// The highest value of a layer: its rows have the same shades, so that costs
// can be compared in both dimensions.
static uint64_t top_of(const struct sensor_view *v, uint32_t layer)
{
    uint64_t top = 0;

    for (uint32_t row = 0; row < v->header.layout.histogram.y.bins; row++) {
        uint64_t most = sensor_heat_of(v, layer, row).most;
        top = most > top ? most : top;
    }
    return top;
}

// A row of counts has shades of its own, up to its most.
static void print_heat(FILE *out, const struct sensor_view *v)
{
    const struct sensor_histogram_layout *h = &v->header.layout.histogram;

    for (uint32_t layer = 0; layer < sensor_layers(v); layer++) {
        uint64_t top = h->layers ? top_of(v, layer) : 0;
        if (h->layers)
            fprintf(out, "layer %" PRIu32 ": cost of one\n", layer);
        fprintf(out, "         y | x from %" PRIu32 " to %" PRIu32 "\n",
                sensor_bin_start(&h->x, 0),
                sensor_bin_start(&h->x, h->x.bins - 1));
        for (uint32_t row = 0; row < h->y.bins; row++) {
            struct sensor_heat heat = sensor_heat_of(v, layer, row);
            heat.top = top ? top : heat.top;
            if (heat.most)
                sensor_print_heat(out, v, &heat, sensor_bin_start(&h->y, row));
        }
    }
}

static void print_histogram(FILE *out, const struct sensor_view *v, bool json)
{
    struct sensor_totals t = sensor_view_totals(v);

    fprintf(out,
            json ? ", \"count\": %" PRIu64 ", \"sum\": %" PRIu64
                   ", \"least\": %" PRIu32 ", \"most\": %" PRIu32
                   ", \"under\": %" PRIu64 ", \"over\": %" PRIu64
                   ", \"cells\": ["
                 : "count %" PRIu64 ", sum %" PRIu64 ", least %" PRIu32
                   ", most %" PRIu32 ", under %" PRIu64 ", over %" PRIu64 "\n",
            t.count, t.sum, t.least, t.most, t.under, t.over);
    if (!json && v->header.layout.histogram.y.bins)
        print_heat(out, v);
    else
        print_cells(out, v, json);
    if (json)
        fputc(']', out);
}

// --- all types

static void print_value(FILE *out, const struct sensor_view *v, bool json)
{
    switch (v->header.layout.type) {
    case SENSOR_SCALAR:
        fprintf(out, json ? ", \"value\": %" PRIu64 : "%" PRIu64 "\n",
                sensor_view_scalar(v));
        break;
    case SENSOR_HISTOGRAM:
        print_histogram(out, v, json);
        break;
    case SENSOR_LIST:
        print_list(out, v, json);
        break;
    case SENSOR_RING:
        print_ring(out, v, json);
        break;
    }
}

void sensor_print(FILE *out, const char *path, const struct sensor_view *v)
{
    const struct sensor_header *h = &v->header;
    uint64_t closed = sensor_wide_read(&h->closed_ns);

    put_printable(out, path);
    fprintf(out, ": %s, %s, of task %" PRIu32 "\n",
            sensor_type_text(h->layout.type), closed ? "closed" : "open",
            h->owner);
    // The description of a trace's ring, which names all events, is long.
    bool all = h->layout.type != SENSOR_RING || !h->layout.ring.trace;
    for (const char *line = h->text; *line && (all || line == h->text);) {
        char copy[SENSOR_TEXT_MAX];
        size_t length = strcspn(line, "\n");
        memcpy(copy, line, length);
        copy[length] = '\0';
        fputs("  ", out);
        put_printable(out, copy);
        fputc('\n', out);
        line += length + (line[length] == '\n');
    }
    print_value(out, v, false);
}

void sensor_print_json(FILE *out, const char *path, const struct sensor_view *v)
{
    const struct sensor_header *h = &v->header;

    fputs("{\"path\": ", out);
    json_string(out, path, strlen(path));
    fprintf(out,
            ", \"type\": \"%s\", \"owner\": %" PRIu32 ", \"created_ns\": "
            "%" PRIu64 ", \"closed_ns\": %" PRIu64 ", \"text\": ",
            sensor_type_text(h->layout.type), h->owner,
            sensor_wide_read(&h->created_ns), sensor_wide_read(&h->closed_ns));
    json_string(out, h->text, strlen(h->text));
    print_value(out, v, true);
    fputs("}\n", out);
}
