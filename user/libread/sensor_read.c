#include "user/libread/sensor_read.h"
#include "user/libread/sensor_trace_read.h"

#include "lib/string.h"
#include "lib/types.h"

const char *sensor_type_text(uint32_t type)
{
    static const char *const names[SENSOR_TYPES] = {
        [SENSOR_NONE] = "none",           [SENSOR_SCALAR] = "scalar",
        [SENSOR_HISTOGRAM] = "histogram", [SENSOR_LIST] = "list",
        [SENSOR_RING] = "ring",
    };
    return type < SENSOR_TYPES ? names[type] : "unknown";
}

static const char *axis_problem(const struct sensor_axis *a)
{
    if (a->scale >= SENSOR_SCALES)
        return "the scale of an axis is neither linear nor log2";
    if (!a->bins)
        return "an axis has no bins";
    if (a->bins > SENSOR_BINS_MAX)
        return "an axis has more than 65536 bins";
    if (a->scale == SENSOR_LINEAR && !a->width)
        return "the width of a linear axis is 0";
    if (!sensor_axis_valid(a))
        return a->scale == SENSOR_LINEAR
                   ? "a linear axis ends above 2^32"
                   : "a log2 axis has more bins than its powers of two";
    return NULL;
}

static const char *histogram_problem(const struct sensor_histogram_layout *h)
{
    if (!h->lanes || h->lanes > SENSOR_LANES_MAX)
        return "a histogram has 1 to 64 lanes";
    if (h->layers == 1)
        return "a layered histogram has at least 2 layers";
    if (h->layers > SENSOR_LAYERS_MAX)
        return "a histogram has more than 64 layers";
    const char *problem = axis_problem(&h->x);
    return problem || !h->y.bins ? problem : axis_problem(&h->y);
}

const char *sensor_layout_problem(const struct sensor_layout *l)
{
    const char *problem = NULL;
    if (sensor_data_bytes(l))
        return NULL;
    switch (l->type) {
    case SENSOR_SCALAR:
        return "a scalar is a gauge or a counter of 32 or 64 bits";
    case SENSOR_HISTOGRAM:
        problem = histogram_problem(&l->histogram);
        break;
    case SENSOR_LIST:
        return "a list has 4 to 65536 slots, a power of two, of 32, 64 or 128 "
               "bytes, at most 4 MiB, and the TSC or its numbers as a clock";
    case SENSOR_RING:
        return l->ring.trace
                   ? "the ring of a trace has at least 4096 bytes, a power of "
                     "two, and at most 16 MiB"
                   : "a ring has at least 4096 bytes, a power of two, and at "
                     "most 2 MiB";
    default:
        return "the type of the sensor is not known";
    }
    return problem ? problem : "the sensor would have more than 4 MiB";
}

const char *sensor_view_init(struct sensor_view *v, const void *file,
                             size_t size)
{
    if (size < SENSOR_DATA)
        return "it is shorter than a header";
    memcpy(&v->header, file, sizeof(v->header));
    v->header.text[SENSOR_TEXT_MAX - 1] = '\0';
    v->data = (const u8 *)file + SENSOR_DATA;
    if (v->header.magic != SENSOR_MAGIC)
        return "it is not a sensor";
    if (v->header.version != SENSOR_VERSION)
        return "its version is not this tool's";
    const char *problem = sensor_layout_problem(&v->header.layout);
    if (problem)
        return problem;
    u32 bytes = sensor_data_bytes(&v->header.layout);
    if (v->header.data_bytes != bytes)
        return "its header contradicts itself";
    if (v->header.layout.type == SENSOR_HISTOGRAM)
        v->lane_bytes = (u32)sensor_lane_bytes(&v->header.layout.histogram);
    return size - SENSOR_DATA < bytes ? "it is cut off" : NULL;
}

uint64_t sensor_view_scalar(const struct sensor_view *v)
{
    u64 value = sensor_count_read((const struct sensor_count *)v->data);
    return v->header.layout.scalar.bits == 32 ? (u32)value : value;
}

// --- histograms

static const struct sensor_histogram_layout *
histogram(const struct sensor_view *v)
{
    return &v->header.layout.histogram;
}

static const struct sensor_lane *lane(const struct sensor_view *v, u32 i)
{
    return (const void *)((const u8 *)v->data + i * v->lane_bytes);
}

uint32_t sensor_rows(const struct sensor_view *v)
{
    return MAX(histogram(v)->y.bins, 1u);
}

uint32_t sensor_layers(const struct sensor_view *v)
{
    return MAX(histogram(v)->layers, 1u);
}

uint64_t sensor_view_cell(const struct sensor_view *v, uint32_t layer,
                          uint32_t row, uint32_t column, uint64_t *cost)
{
    const struct sensor_histogram_layout *h = histogram(v);
    u32 cell = (layer * sensor_rows(v) + row) * h->x.bins + column;
    u64 count = 0, sum = 0;
    for (u32 i = 0; i < h->lanes; i++) {
        const struct sensor_count *cells = lane(v, i)->cells;
        count += sensor_count_read(&cells[h->layers ? 2 * cell : cell]);
        if (h->layers && cost)
            sum += sensor_count_read(&cells[2 * cell + 1]);
    }
    if (cost)
        *cost = sum;
    return count;
}

void sensor_view_row(const struct sensor_view *v, uint32_t layer, uint32_t row,
                     struct sensor_cell *out)
{
    const struct sensor_histogram_layout *h = histogram(v);
    u32 first = (layer * sensor_rows(v) + row) * h->x.bins;
    memset(out, 0, h->x.bins * sizeof(*out));
    for (u32 i = 0; i < h->lanes; i++) {
        const struct sensor_count *cells = lane(v, i)->cells;
        if (h->layers) {
            cells += 2 * first;
            for (u32 x = 0; x < h->x.bins; x++) {
                out[x].hits += sensor_count_read(&cells[2 * x]);
                out[x].cost += sensor_count_read(&cells[2 * x + 1]);
            }
        } else {
            cells += first;
            for (u32 x = 0; x < h->x.bins; x++)
                out[x].hits += sensor_count_read(&cells[x]);
        }
    }
}

static u64 count_in_bins(const struct sensor_view *v)
{
    u64 count = 0;
    for (u32 layer = 0; layer < sensor_layers(v); layer++)
        for (u32 row = 0; row < sensor_rows(v); row++)
            for (u32 column = 0; column < histogram(v)->x.bins; column++)
                count += sensor_view_cell(v, layer, row, column, NULL);
    return count;
}

struct sensor_totals sensor_view_totals(const struct sensor_view *v)
{
    struct sensor_totals t = sensor_view_sums(v);
    t.count = count_in_bins(v);
    return t;
}

struct sensor_totals sensor_view_sums(const struct sensor_view *v)
{
    struct sensor_totals t = { 0 };
    u32 not_min = 0;
    for (u32 i = 0; i < histogram(v)->lanes; i++) {
        const struct sensor_lane *l = lane(v, i);
        t.sum += sensor_count_read(&l->sum);
        t.under += sensor_count_read(&l->under);
        t.over += sensor_count_read(&l->over);
        u32 lane_not_min = READ_ONCE(l->not_min), lane_max = READ_ONCE(l->max);
        not_min = MAX(not_min, lane_not_min);
        t.most = MAX(t.most, lane_max);
    }
    t.least = not_min ? ~not_min : 0;
    return t;
}

// --- lists of events

uint32_t sensor_view_numbers(const struct sensor_view *v)
{
    if (v->header.layout.type == SENSOR_RING && v->header.layout.ring.trace)
        return sensor_trace_numbers(v);
    if (v->header.layout.type == SENSOR_RING)
        return READ_ONCE(((const struct sensor_ring *)v->data)->taken.number);
    return READ_ONCE(((const struct sensor_list *)v->data)->next);
}

static u32 numbers_taken(const struct sensor_view *v)
{
    const struct sensor_list *l = (const struct sensor_list *)v->data;
    return __atomic_load_n(&l->next, __ATOMIC_ACQUIRE);
}

void sensor_cursor_begin(struct sensor_cursor *c, const struct sensor_view *v)
{
    u32 end = numbers_taken(v);
    *c = (struct sensor_cursor){ 0 };
    c->next = end - MIN(end, v->header.layout.list.slots);
}

// Skips what was overtaken, and a number that no list had.
static void catch_up(struct sensor_cursor *c, const struct sensor_view *v,
                     u32 end)
{
    u32 behind = end - c->next, slots = v->header.layout.list.slots;
    if (behind > 0x7fffffffu) {
        c->jumps++;
        c->next = end;
    } else if (behind > slots) {
        c->lost += behind - slots;
        c->next = end - slots;
    }
}

bool sensor_cursor_next(struct sensor_cursor *c, const struct sensor_view *v,
                        bool over, struct sensor_event *out)
{
    const struct sensor_list_layout *l = &v->header.layout.list;
    u32 end = numbers_taken(v);
    catch_up(c, v, end);
    for (; c->next != end; c->next++) {
        enum sensor_seen seen = sensor_see(v->data, l, c->next, out);
        if (seen == SENSOR_SEEN_PENDING && !over &&
            end - c->next <= l->slots / 2)
            return false;
        if (seen != SENSOR_SEEN_EVENT) {
            c->lost++;
        } else if (out->bytes > l->slot_bytes - sizeof(*out)) {
            c->spoilt++;
        } else {
            c->read++;
            c->next++;
            return true;
        }
    }
    return false;
}
