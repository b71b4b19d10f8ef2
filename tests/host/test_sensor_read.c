// Reading sensors (user/libread/sensor_read.h) that are whole, in the middle of
// a change, overtaken, or spoilt; and why layouts are refused, in words.
// link: user/libstrobe/sensor_print.c user/libstrobe/table.c
// link: user/libstrobe/messages.c
#define _GNU_SOURCE // open_memstream
#include "test.h"

#include "user/libread/sensor_read.h"
#include "user/libstrobe/sensor_print.h"

#define SLOTS 8u

static u32 file[(SENSOR_DATA + SENSOR_BYTES_MAX) / sizeof(u32)];
static struct sensor_header *const header = (struct sensor_header *)file;
static void *const data = &file[SENSOR_DATA / sizeof(u32)];

static const struct sensor_layout list_layout = { .type = SENSOR_LIST,
                                                  .list = { SLOTS, 64 } };
static const struct sensor_layout histogram_layout = {
    .type = SENSOR_HISTOGRAM,
    .histogram = { .lanes = 4,
                   .x = { SENSOR_LINEAR, 100, 10, 8 },
                   .y = { SENSOR_LOG2, 2, 1, 6 } }
};

static size_t make(const struct sensor_layout *l, const char *text)
{
    memset(file, 0, sizeof(file));
    header->magic = SENSOR_MAGIC;
    header->version = SENSOR_VERSION;
    header->layout = *l;
    header->data_bytes = sensor_data_bytes(l);
    strcpy(header->text, text);
    return SENSOR_DATA + header->data_bytes;
}

static struct sensor_view view_of(const struct sensor_layout *l)
{
    struct sensor_view v;
    assert_null(sensor_view_init(&v, file, make(l, "")));
    return v;
}

// --- headers

static void test_headers(void **state UNUSED)
{
    struct sensor_view v;
    size_t size = make(&list_layout, "text");
    assert_null(sensor_view_init(&v, file, size));
    assert_string_equal(v.header.text, "text");
    assert_string_equal(sensor_view_init(&v, file, size - 1), "it is cut off");
    assert_string_equal(sensor_view_init(&v, file, SENSOR_DATA - 1),
                        "it is shorter than a header");
    header->data_bytes += 4;
    assert_string_equal(sensor_view_init(&v, file, size),
                        "its header contradicts itself");
    header->version++;
    assert_non_null(sensor_view_init(&v, file, size));
    header->magic++;
    assert_string_equal(sensor_view_init(&v, file, size), "it is not a sensor");
    memset(header->text, 'x', sizeof(header->text)); // without a NUL
    sensor_view_init(&v, file, size);
    assert_int_equal(strlen(v.header.text), SENSOR_TEXT_MAX - 1);
}

static void test_refused_layouts(void **state UNUSED)
{
    struct sensor_layout l = histogram_layout;
    assert_null(sensor_layout_problem(&l));
    l.histogram.layers = 1;
    assert_string_equal(sensor_layout_problem(&l),
                        "a layered histogram has at least 2 layers");
    l.histogram.layers = 0;
    l.histogram.x.width = 0;
    assert_string_equal(sensor_layout_problem(&l),
                        "the width of a linear axis is 0");
    l.histogram.x.width = 1;
    l.histogram.x.bins = 1u << 31;
    assert_string_equal(sensor_layout_problem(&l),
                        "an axis has more than 65536 bins");
    l.histogram.x.bins = SENSOR_BINS_MAX;
    l.histogram.y = l.histogram.x;
    assert_string_equal(sensor_layout_problem(&l),
                        "the sensor would have more than 4 MiB");
    l.type = 77;
    assert_string_equal(sensor_layout_problem(&l),
                        "the type of the sensor is not known");
}

// --- histograms

static void test_histogram(void **state UNUSED)
{
    const struct sensor_histogram_layout *h = &histogram_layout.histogram;
    struct sensor_view v = view_of(&histogram_layout);
    u64 sum = 0;
    for (u32 i = 0; i < 10000; i++) {
        u32 x = random_u64() % 120 + 90;
        sensor_histogram_add_2d(data, h, i, x, 4 + i % 28);
        sum += x;
    }
    sensor_histogram_add_2d(data, h, 0, 150, 3);  // y is under
    sensor_histogram_add_2d(data, h, 0, 150, 32); // y is over
    struct sensor_totals t = sensor_view_totals(&v);
    assert_int_equal(t.count + t.under + t.over, 10002);
    assert_int_equal(t.sum, sum);
    assert_true(t.under > 0 && t.over > 0);
    assert_true(t.least >= 90 && t.most < 210 && t.least < t.most);
    struct sensor_cell cells[64];
    u64 count = 0;
    assert_true(h->x.bins <= ARRAY_SIZE(cells));
    for (u32 row = 0; row < sensor_rows(&v); row++) {
        sensor_view_row(&v, 0, row, cells);
        for (u32 column = 0; column < h->x.bins; column++) {
            u64 hits = sensor_view_cell(&v, 0, row, column, NULL);
            assert_int_equal(cells[column].hits, hits);
            count += hits;
        }
    }
    assert_int_equal(count, t.count);
}

static void test_layers(void **state UNUSED)
{
    static const struct sensor_layout layered = {
        .type = SENSOR_HISTOGRAM,
        .histogram = { .lanes = 3,
                       .layers = 2,
                       .x = { SENSOR_LINEAR, 0, 1, 10 },
                       .y = { SENSOR_LINEAR, 0, 1, 4 } },
    };
    struct sensor_view v = view_of(&layered);
    struct sensor_cell cells[10];
    for (u32 i = 0; i < 600; i++)
        sensor_layer_add(data, &layered.histogram, i, i % 2, i % 10, i % 4, i);
    for (u32 row = 0; row < 8; row++) {
        sensor_view_row(&v, row / 4, row % 4, cells);
        for (u32 x = 0; x < 10; x++) {
            u64 cost;
            assert_int_equal(cells[x].hits,
                             sensor_view_cell(&v, row / 4, row % 4, x, &cost));
            assert_int_equal(cells[x].cost, cost);
            assert_int_equal(!cost, row / 4 != x % 2 || x % 2 != row % 2);
        }
    }
}

// A layer is drawn by the mean cost of a cell, not by its count; its rows have
// the same shades.
static void test_heat_of_layers(void **state UNUSED)
{
    static const struct sensor_layout layered = {
        .type = SENSOR_HISTOGRAM,
        .histogram = { .lanes = 1,
                       .layers = 2,
                       .x = { SENSOR_LINEAR, 0, 1, 3 },
                       .y = { SENSOR_LINEAR, 0, 1, 2 } },
    };
    struct sensor_view v = view_of(&layered);
    char *text;
    size_t size;
    for (u32 i = 0; i < 100; i++)
        sensor_layer_add(data, &layered.histogram, 0, 0, 0, 0, 1);
    sensor_layer_add(data, &layered.histogram, 0, 0, 1, 0, 80);
    sensor_layer_add(data, &layered.histogram, 0, 0, 1, 1, 8);
    sensor_layer_add(data, &layered.histogram, 0, 0, 1, 1, 9);
    struct sensor_heat heat = sensor_heat_of(&v, 0, 0);
    assert_int_equal(heat.columns[0], 1000);
    assert_int_equal(heat.columns[1], 80000);
    assert_int_equal(heat.most, 80000);
    FILE *out = open_memstream(&text, &size);
    sensor_print(out, "heat", &v);
    fclose(out);
    assert_non_null(strstr(text, "layer 0: cost of one\n"));
    assert_non_null(strstr(text, "         0 |.@ | at most 80.000\n"));
    assert_non_null(strstr(text, "         1 | . | at most 8.500\n"));
    free(text);
}

// A sum that exceeds 32 bits in each lane.
static void test_large_sums(void **state UNUSED)
{
    const struct sensor_histogram_layout *h = &histogram_layout.histogram;
    struct sensor_view v = view_of(&histogram_layout);
    for (u32 i = 0; i < 40; i++)
        sensor_histogram_row(sensor_lane_of(data, h, i), h, 0, 0xf0000000u);
    assert_int_equal(sensor_view_totals(&v).sum, 40ull * 0xf0000000u);
    assert_int_equal(sensor_view_totals(&v).over, 40);
}

// --- lists

static u32 post(u32 value)
{
    return sensor_post(data, &list_layout.list, 1, 0, 1, &value, sizeof(value));
}

union event {
    struct sensor_event event;
    u32 words[SENSOR_SLOT_BYTES_MAX / sizeof(u32)];
};

static void expect(struct sensor_cursor *c, const struct sensor_view *v,
                   u32 value)
{
    union event e;
    assert_true(sensor_cursor_next(c, v, false, &e.event));
    assert_int_equal(e.event.payload[0], value);
}

static void expect_none(struct sensor_cursor *c, const struct sensor_view *v)
{
    union event e;
    assert_false(sensor_cursor_next(c, v, false, &e.event));
}

static void test_logical_clock(void **state UNUSED)
{
    struct sensor_layout logical = list_layout;
    logical.list.clock = SENSOR_CLOCK_LOGICAL;
    struct sensor_view v = view_of(&logical);
    struct sensor_cursor c;
    sensor_cursor_begin(&c, &v);
    for (u32 i = 0; i < SLOTS; i++) {
        union event e;
        sensor_post(data, &logical.list, 1, 0, 1, &i, sizeof(i));
        assert_true(sensor_cursor_next(&c, &v, false, &e.event));
        assert_int_equal(sensor_wide_read(&e.event.time), i);
    }
    logical.list.clock = SENSOR_CLOCKS;
    assert_non_null(strstr(sensor_layout_problem(&logical), "clock"));
}

static void test_overtaken(void **state UNUSED)
{
    struct sensor_view v = view_of(&list_layout);
    struct sensor_cursor c;
    sensor_cursor_begin(&c, &v);
    expect_none(&c, &v);
    for (u32 i = 0; i < SLOTS + 3; i++)
        post(i);
    for (u32 i = 3; i < SLOTS + 3; i++)
        expect(&c, &v, i);
    expect_none(&c, &v);
    assert_int_equal(c.lost, 3);
    assert_int_equal(c.read, SLOTS);
    // A later reader does not count what was before it.
    sensor_cursor_begin(&c, &v);
    expect(&c, &v, 3);
    assert_int_equal(c.lost, 0);
}

// A writer that has taken a number, or also its slot, and stops there. The
// reader waits until half of the slots are taken behind it.
static void half_written(bool has_slot)
{
    struct sensor_view v = view_of(&list_layout);
    struct sensor_cursor c;
    sensor_cursor_begin(&c, &v);
    post(0);
    struct sensor_list *list = data;
    u32 dead = list->next++;
    struct sensor_event *slot = sensor_slot(data, &list_layout.list, dead);
    if (has_slot)
        slot->state = SENSOR_EVENT_BUSY(dead);
    expect(&c, &v, 0);
    for (u32 i = 2; i < 1 + SLOTS / 2; i++) {
        post(i);
        expect_none(&c, &v);
    }
    assert_int_equal(c.lost, 0);
    post(1 + SLOTS / 2);
    expect(&c, &v, 2);
    assert_int_equal(c.lost, 1);
    for (u32 i = 2 + SLOTS / 2; i < 100; i++)
        post(i);
    union event e;
    while (sensor_cursor_next(&c, &v, true, &e.event))
        assert_true(e.event.payload[0] != dead);
    assert_int_equal(c.read + c.lost, 100);
}

static void test_half_written(void **state UNUSED)
{
    half_written(false);
    half_written(true);
}

static bool is_dead(u32 thread)
{
    return thread == 77;
}

static u32 post_as(u32 thread, u32 value)
{
    return sensor_post_unless(data, &list_layout.list, 1, 0, thread, &value,
                              sizeof(value), is_dead);
}

// A slot of a writer that was killed is taken over after two rounds; that of
// one that lives never is.
static void take_over(u32 thread, u32 lost)
{
    struct sensor_view v = view_of(&list_layout);
    struct sensor_cursor c;
    sensor_cursor_begin(&c, &v);
    ((struct sensor_list *)data)->next++;
    struct sensor_event *slot = sensor_slot(data, &list_layout.list, 0);
    slot->state = SENSOR_EVENT_BUSY(0);
    slot->thread = thread;
    for (u32 i = 1; i < 5 * SLOTS; i++) {
        union event e;
        post_as(1, i);
        while (sensor_cursor_next(&c, &v, false, &e.event))
            assert_int_equal(e.event.payload[0], c.next - 1);
    }
    assert_int_equal(c.lost, lost);
    assert_int_equal(c.read + c.lost, 5 * SLOTS);
}

static void test_taken_over(void **state UNUSED)
{
    take_over(77, 2);
    take_over(78, 5);
}

static void test_spoilt(void **state UNUSED)
{
    struct sensor_view v = view_of(&list_layout);
    struct sensor_cursor c;
    sensor_cursor_begin(&c, &v);
    post(0);
    post(1);
    sensor_slot(data, &list_layout.list, 0)->bytes = 45;
    expect(&c, &v, 1);
    assert_int_equal(c.spoilt, 1);
    ((struct sensor_list *)data)->next = 0; // backwards
    expect_none(&c, &v);
    assert_int_equal(c.jumps, 1);
    for (u32 round = 0; round < 300; round++) {
        union event e;
        for (u32 i = 0; i < header->data_bytes / sizeof(u32); i++)
            ((u32 *)data)[i] = (u32)random_u64();
        for (u32 i = 0; sensor_cursor_next(&c, &v, true, &e.event); i++)
            assert_true(i < SLOTS && e.event.bytes <= 44);
    }
}

// --- descriptions

static void test_fields(void **state UNUSED)
{
    static const char text[] = "decoder of videos\n"
                               "#type drop 1\nnumber, u32\n"
                               "#type frame 10\nnumber, u32\ncost, s64\n"
                               "delta, s32\n#type last 11\nodd, u33\n";
    char name[SENSOR_FIELD_NAME];
    struct sensor_field f;
    const char *at = sensor_find_type(text, 10, name);
    assert_non_null(at);
    assert_string_equal(name, "frame");
    assert_true(sensor_next_field(&at, &f));
    assert_string_equal(f.name, "number");
    assert_true(f.bytes == 4 && !f.is_signed);
    assert_true(sensor_next_field(&at, &f));
    assert_true(f.bytes == 8 && f.is_signed);
    assert_true(sensor_next_field(&at, &f));
    s32 delta = -5;
    assert_int_equal((s64)sensor_field_value(&f, &delta), -5);
    assert_false(sensor_next_field(&at, &f));
    at = sensor_find_type(text, 11, name);
    assert_non_null(at);
    assert_false(sensor_next_field(&at, &f));
    assert_null(sensor_find_type(text, 12, name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_refused_layouts),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_heat_of_layers),
        cmocka_unit_test(test_large_sums),
        cmocka_unit_test(test_logical_clock),
        cmocka_unit_test(test_overtaken),
        cmocka_unit_test(test_half_written),
        cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_fields),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
