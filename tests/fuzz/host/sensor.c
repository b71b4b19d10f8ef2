// user/libread/sensor_read.c and user/libread/sensor_fields.c: files of sensors
// with any content. Nothing is read outside of the file, and every loop ends.
// If the first byte is even, the header is made valid for the layout that the
// input has, so that the data are reached.
#include "host.h"

#include <string.h>

#include "user/libread/sensor_read.h"

static void read_fields(const char *text, u32 type)
{
    char name[SENSOR_FIELD_NAME];
    struct sensor_field f;
    const char *at = sensor_find_type(text, type, name);
    REQUIRE(!at || strlen(name) < sizeof(name));
    while (at && sensor_next_field(&at, &f))
        REQUIRE(f.bytes <= 8 && strlen(f.name) < sizeof(f.name));
}

static void read_list(const struct sensor_view *v)
{
    union {
        struct sensor_event event;
        u32 words[SENSOR_SLOT_BYTES_MAX / 4];
    } e;
    struct sensor_cursor c;
    u32 slots = v->header.layout.list.slots, events = 0;
    sensor_cursor_begin(&c, v);
    while (sensor_cursor_next(&c, v, true, &e.event)) {
        REQUIRE(e.event.bytes <=
                v->header.layout.list.slot_bytes - sizeof(e.event));
        REQUIRE(++events <= slots);
    }
    REQUIRE(c.read == events && c.read + c.lost + c.spoilt <= slots);
}

static void read_ring(const struct sensor_view *v)
{
    static union {
        struct sensor_record record;
        u8 bytes[SENSOR_RECORD_MAX];
    } r;
    struct sensor_ring_cursor c;
    const struct sensor_ring *ring = v->data;
    u32 bytes = v->header.layout.ring.bytes, records = 0;
    sensor_ring_cursor_begin(&c, v);
    u32 begin = c.next;
    while (sensor_ring_cursor_next(&c, v, true, &r.record)) {
        REQUIRE(r.record.size >= sizeof(r.record) &&
                r.record.size <= SENSOR_RECORD_MAX);
        REQUIRE(++records <= sensor_ring_records_max(v) * 2);
    }
    REQUIRE(c.read == records);
    if (v->header.layout.ring.trace)
        return;
    REQUIRE(records <= bytes / SENSOR_UNIT);
    REQUIRE(c.spoilt || !c.lost || c.next == ring->taken.number);
    REQUIRE(c.next - begin >= c.lost || c.spoilt);
}

static void read_value(const struct sensor_view *v)
{
    switch (v->header.layout.type) {
    case SENSOR_SCALAR:
        sensor_view_scalar(v);
        break;
    case SENSOR_HISTOGRAM:
        sensor_view_totals(v);
        break;
    case SENSOR_LIST:
        read_list(v);
        read_fields(v->header.text, 10);
        break;
    case SENSOR_RING:
        read_ring(v);
        break;
    }
}

// A header as the kernel writes it, with the input's layout.
static void give_header(struct sensor_header *h)
{
    h->magic = SENSOR_MAGIC;
    h->version = SENSOR_VERSION;
    if (h->layout.type == SENSOR_HISTOGRAM) {
        h->layout.histogram.lanes %= 5;
        h->layout.histogram.x.bins %= 70;
        h->layout.histogram.y.bins %= 9;
        h->layout.histogram.layers %= 4;
    } else if (h->layout.type == SENSOR_LIST) {
        h->layout.list.slots = 4u << h->layout.list.slots % 5;
        h->layout.list.slot_bytes = 32u << h->layout.list.slot_bytes % 3;
    } else if (h->layout.type == SENSOR_RING) {
        h->layout.ring.bytes = SENSOR_RING_MIN << h->layout.ring.bytes % 3;
        h->layout.ring.stops %= 2;
        h->layout.ring.trace %= 2;
    }
    h->data_bytes = sensor_data_bytes(&h->layout);
}

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t size)
{
    struct sensor_view v;
    struct sensor_header h = { 0 };
    size_t begin = size < sizeof(h) ? size : sizeof(h);
    memcpy(&h, bytes, begin);
    if (size && !(bytes[0] & 1))
        give_header(&h);
    size_t rest = size - begin;
    size_t data = h.data_bytes <= SENSOR_BYTES_MAX ? h.data_bytes : 0;
    u8 *file = calloc(1, SENSOR_DATA + data + 1);
    REQUIRE(file);
    memcpy(file, &h, sizeof(h));
    memcpy(file + SENSOR_DATA, bytes + begin, rest < data ? rest : data);
    if (!sensor_view_init(&v, file, SENSOR_DATA + data))
        read_value(&v);
    else
        REQUIRE(sensor_layout_problem(&h.layout) || h.magic != SENSOR_MAGIC ||
                h.version != SENSOR_VERSION ||
                h.data_bytes != sensor_data_bytes(&h.layout));
    free(file);
    return 0;
}
