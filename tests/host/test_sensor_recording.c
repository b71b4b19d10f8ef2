// Files of `sensors record` (user/libstrobe/sensor_recording.h): cut at any
// byte they are read up to their last whole chunk; with any content they are
// read without harm; events of several lists come in the order of time.
//
// link: user/libstrobe/sensor_recording.c
#define _GNU_SOURCE
#include "test.h"

#include "user/libstrobe/sensor_recording.h"

#include <unistd.h>

static u8 file[8192];
static size_t size;
static u32 chunks_end[64], chunks; // where each chunk ends

static void put(const void *bytes, size_t n)
{
    if (n)
        memcpy(file + size, bytes, n);
    size += n;
}

static void chunk(enum recording_kind kind, const void *body, size_t n,
                  const void *rest, size_t more)
{
    struct recording_chunk c = { kind, (u32)(n + more + 3) / 4 * 4 };
    put(&c, sizeof(c));
    put(body, n);
    put(rest, more);
    while ((size - sizeof(struct recording_head)) % 4)
        file[size++] = 0;
    chunks_end[chunks++] = (u32)size;
}

static void put_sensor(u32 source, struct sensor_layout layout)
{
    struct recording_sensor s = { .source = source,
                                  .layout = layout,
                                  .tsc_hz = { 1000, 0 },
                                  .path_bytes = 2,
                                  .text_bytes = 5 };
    char strings[8] = "p0texts";
    strings[1] = (char)('0' + source);
    chunk(RECORDING_SENSOR, &s, sizeof(s), strings, 7);
}

static void put_time(u32 ns, u32 tsc)
{
    struct recording_time t = { { ns, 0 }, { tsc, 0 } };
    chunk(RECORDING_TIME, &t, sizeof(t), NULL, 0);
}

static void put_event(u32 source, u32 number, u32 tsc)
{
    struct {
        struct recording_event head;
        struct sensor_event event;
    } e = { { source, number }, { .type = 1, .bytes = 6, .time = { tsc, 0 } } };
    chunk(RECORDING_EVENT, &e, sizeof(e), "sixsix", 6);
}

static void put_record(u32 source, u32 number, u32 tsc)
{
    struct {
        struct recording_record head;
        struct sensor_record record;
    } r = { { source },
            { .size = sizeof(struct sensor_record) + 3,
              .type = 1,
              .number = number,
              .time = { tsc, 0 } } };
    chunk(RECORDING_RECORD, &r, sizeof(r), "abc", 3);
}

static void put_loss(u32 source, u32 lost)
{
    struct recording_loss l = { source, { lost, 0 }, { 0, 0 } };
    chunk(RECORDING_LOSS, &l, sizeof(l), NULL, 0);
}

static void put_histogram(u32 source, u32 cell)
{
    struct recording_histogram h = { .source = source, .cells = 1 };
    struct recording_cell c = { cell, { 5, 0 }, { 0, 0 } };
    chunk(RECORDING_HISTOGRAM, &h, sizeof(h), &c, sizeof(c));
}

static struct recording_head head(void)
{
    return (struct recording_head){ .magic = RECORDING_MAGIC,
                                    .version = RECORDING_VERSION,
                                    .bytes = sizeof(struct recording_head),
                                    .interval_ns = { 1000, 0 },
                                    .tsc_hz = { 400000000, 0 },
                                    .tsc_error_ppm = 1000000 };
}

static void make(void)
{
    struct recording_head h = head();
    struct sensor_layout scalar = { .type = SENSOR_SCALAR,
                                    .scalar = { SENSOR_COUNTER, 64 } };
    struct sensor_layout list = { .type = SENSOR_LIST, .list = { 16, 64 } };
    struct sensor_layout ring = { .type = SENSOR_RING, .ring = { 4096, 0 } };
    struct sensor_layout histogram = {
        .type = SENSOR_HISTOGRAM,
        .histogram = { .lanes = 4, .x = { SENSOR_LINEAR, 0, 10, 8 } }
    };
    size = chunks = 0;
    put(&h, sizeof(h));
    put_sensor(0, scalar);
    put_sensor(1, list);
    put_sensor(2, ring);
    put_sensor(3, histogram);
    put_time(5000, 100);
    struct recording_scalar s = { 0, { 7, 0 } };
    chunk(RECORDING_SCALAR, &s, sizeof(s), NULL, 0);
    put_time(6000, 1100);
    put_event(1, 0, 500);
    put_event(1, 1, 480); // after its number, the time was read late
    put_loss(1, 3);
    put_event(1, 5, 900);
    put_record(2, 0, 490);
    put_loss(2, 1);
    put_record(2, 2, 1000);
    put_histogram(3, 7);
    chunk(99, "new", 3, NULL, 0); // of a later tool
    put_time(7000, 2100);
    chunk(RECORDING_END, NULL, 0, NULL, 0);
}

static char path[] = "/tmp/test_sensor_recording.XXXXXX";

static const char *read_file(struct recording *r, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(file, 1, n, f), n);
    fclose(f);
    return recording_open(r, path);
}

static void test_order_of_time(void **state UNUSED)
{
    static const u64 times[] = {
        100, 480, 490, 500, 900, 900, 1000, 1000, 1100
    };
    struct recording r;
    make();
    assert_null(read_file(&r, size));
    assert_true(r.ended && !r.cut_off && r.unknown == 1 && r.samples == 3);
    assert_int_equal(r.sensor_count, 4);
    assert_string_equal(r.sensors[2].path, "p2");
    assert_string_equal(r.sensors[2].text, "texts");
    assert_int_equal(recording_merge(&r), 20);
    assert_int_equal(r.count, ARRAY_SIZE(times));
    for (u32 i = 0; i < r.count; i++)
        assert_int_equal(r.all[i].tsc, times[i]);
    // Losses are where they happened: before the event that follows.
    assert_true(r.all[4].kind == RECORDING_LOSS && r.all[4].source == 1);
    assert_true(r.all[6].kind == RECORDING_LOSS && r.all[6].source == 2);
    assert_true(recording_seconds(&r, 1100) > 0.99e-6 &&
                recording_seconds(&r, 1100) < 1.01e-6);
    recording_close(&r);
}

// Events of a logical clock have the time of the sample that read them, in the
// order of their numbers, and are not in the window.
static void test_logical_clock(void **state UNUSED)
{
    struct recording_head h = head();
    struct recording r;
    size = chunks = 0;
    put(&h, sizeof(h));
    put_sensor(
        0, (struct sensor_layout){ .type = SENSOR_LIST,
                                   .list = { 16, 64, SENSOR_CLOCK_LOGICAL } });
    put_sensor(
        1, (struct sensor_layout){ .type = SENSOR_RING, .ring = { 4096, 0 } });
    put_time(5000, 1000);
    put_event(0, 4, 5); // any time: it is not the TSC's
    put_event(0, 5, 4);
    put_record(1, 0, 900);
    put_record(1, 1, 1500);
    put_time(6000, 2000);
    put_event(0, 6, 6);
    assert_null(read_file(&r, size));
    assert_int_equal(recording_merge(&r), 0);
    static const u32 times[] = { 900, 1000, 1000, 1500, 2000 };
    assert_int_equal(r.count, ARRAY_SIZE(times));
    for (u32 i = 0; i < r.count; i++)
        assert_int_equal(r.all[i].tsc, times[i]);
    for (u32 i = 1; i < 3; i++)
        assert_int_equal(
            ((const struct recording_event *)r.all[i].body)->number, 3 + i);
    recording_close(&r);
}

// A head of this version, an earlier one, and one that is too short.
static void test_heads(void **state UNUSED)
{
    struct recording_head h = head();
    struct recording r;
    size = chunks = 0;
    put(&h, sizeof(h));
    put_time(5000, 100);
    assert_null(read_file(&r, size));
    assert_int_equal(r.tsc_hz, 400000000);
    assert_int_equal(r.tsc_error_ppm, 1000000);
    recording_close(&r);
    h.bytes = RECORDING_HEAD_LEAST;
    size = chunks = 0;
    put(&h, h.bytes);
    put_time(5000, 100);
    assert_null(read_file(&r, size));
    assert_int_equal(r.tsc_hz, 0);
    assert_int_equal(r.samples, 1);
    recording_close(&r);
    h.bytes -= 4;
    memcpy(file, &h, sizeof(h));
    assert_non_null(read_file(&r, size));
}

static void test_cut_at_each_byte(void **state UNUSED)
{
    make();
    for (size_t n = 0; n < size; n++) {
        struct recording r;
        u32 whole = 0;
        const char *problem = read_file(&r, n);
        assert_true(!problem == (n >= sizeof(struct recording_head)));
        if (problem)
            continue;
        while (whole < chunks && chunks_end[whole] <= n)
            whole++;
        size_t end =
            whole ? chunks_end[whole - 1] : sizeof(struct recording_head);
        assert_int_equal(r.cut_off, n - end);
        assert_int_equal(r.sensor_count + r.samples + r.count + r.unknown,
                         whole);
        assert_false(r.ended);
        recording_merge(&r);
        recording_close(&r);
    }
}

static void test_any_content(void **state UNUSED)
{
    for (u32 round = 0; round < 3000; round++) {
        struct recording r;
        make();
        size_t from = round % 2 ? sizeof(struct recording_head) : 0;
        for (u32 i = random_below(8) + 1; i; i--)
            file[from + random_below((u32)(size - from))] = (u8)random_u64();
        if (read_file(&r, size - random_below(100)))
            continue;
        recording_merge(&r);
        for (size_t i = 0; i < r.count; i++)
            assert_true(r.all[i].source < r.sensor_count);
        recording_close(&r);
    }
}

// Each of these chunks is refused, not believed.
static void test_refused(void **state UNUSED)
{
    struct recording r;
    make();
    size = chunks_end[chunks - 2]; // without the end
    put_histogram(3, 8);           // no such cell
    put_histogram(1, 0);           // of a list
    put_event(2, 0, 1);            // of a ring
    put_loss(4, 1);                // no such sensor
    assert_null(read_file(&r, size));
    assert_int_equal(r.unknown, 5);
    recording_close(&r);
    file[8]++;
    assert_string_equal(read_file(&r, size), "its version is not this tool's");
    file[0]++;
    assert_string_equal(read_file(&r, size), "it is not from `sensors record`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_time),
        cmocka_unit_test(test_logical_clock),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_cut_at_each_byte),
        cmocka_unit_test(test_any_content),
        cmocka_unit_test(test_refused),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    random_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
