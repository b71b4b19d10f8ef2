// Rings (<strobe/sensor_ring.h>, user/libread/sensor_ring_read.c): records come
// as they were written, in order, or are counted as lost where that happened;
// also if a handler writes between any two instructions of a writer, the reader
// is slow, or the writer spoils the ring.
#define _GNU_SOURCE
#include "test.h"

#include "user/libread/sensor_read.h"

#include "stepping.h"

#include <pthread.h>

#define BYTES 4096u
#define BLOCK_BYTES (BYTES / 4)

static u32 file[(2 * SENSOR_DATA + BYTES) / sizeof(u32)];
static struct sensor_header *const header = (struct sensor_header *)file;
static void *const data = &file[SENSOR_DATA / sizeof(u32)];
static struct sensor_ring *const ring = data;
static struct sensor_view view;
static struct sensor_ring_cursor cursor;
static u32 written; // records, with those that were lost

static union {
    struct sensor_record record;
    u8 bytes[SENSOR_RECORD_MAX];
} got;

static const struct sensor_ring_layout *layout(void)
{
    return &header->layout.ring;
}

static void make(bool stops)
{
    memset(file, 0, sizeof(file));
    header->magic = SENSOR_MAGIC;
    header->version = SENSOR_VERSION;
    header->layout.type = SENSOR_RING;
    header->layout.ring = (struct sensor_ring_layout){ BYTES, stops, 0 };
    header->data_bytes = sensor_data_bytes(&header->layout);
    assert_null(sensor_view_init(&view, file, sizeof(file)));
    sensor_ring_cursor_begin(&cursor, &view);
    written = 0;
}

// The size of record n, and its bytes.
static u32 size_of(u32 n)
{
    return n * 7 % 61;
}

static bool write_record(void)
{
    u8 bytes[64];
    u32 n = written++;
    memset(bytes, (int)n, sizeof(bytes));
    return sensor_ring_write(data, layout(), n % 100, bytes, size_of(n));
}

static bool read_record(bool over)
{
    if (!sensor_ring_cursor_next(&cursor, &view, over, &got.record))
        return false;
    const struct sensor_record *r = &got.record;
    assert_int_equal(r->number, cursor.next - 1);
    assert_int_equal(r->type, r->number % 100);
    assert_int_equal(r->size, sizeof(*r) + size_of(r->number));
    for (u32 i = sizeof(*r); i < r->size; i++)
        assert_int_equal(got.bytes[i], (u8)r->number);
    return true;
}

static void read_all(bool over)
{
    while (read_record(over))
        ;
}

static void expect_all_counted(void)
{
    assert_int_equal(cursor.read + cursor.lost, ring->taken.number);
    assert_int_equal(cursor.spoilt, 0);
}

// --- one writer

static void test_in_order(void **state UNUSED)
{
    make(false);
    assert_false(read_record(false));
    for (u32 i = 0; i < 10000; i++) {
        assert_true(write_record());
        assert_true(read_record(false) && got.record.number == i);
        assert_false(read_record(false));
    }
    assert_int_equal(cursor.read, 10000);
    assert_int_equal(cursor.lost, 0);
}

static void test_overtaken(void **state UNUSED)
{
    make(false);
    for (u32 i = 0; i < 3000; i++) {
        write_record();
        if (random_below(300) == 0)
            read_all(false);
    }
    read_all(false);
    expect_all_counted();
    assert_true(cursor.lost > 0 && cursor.read > 0);
    // One that begins now does not count what was before.
    sensor_ring_cursor_begin(&cursor, &view);
    read_all(false);
    assert_true(cursor.lost == 0 && cursor.read > 0 && cursor.next == 3000);
}

static void test_stops(void **state UNUSED)
{
    make(true);
    u32 first = 0, lost = 1;
    while (write_record())
        first++;
    for (u32 i = 0; i < 9; i++) // a smaller one may fit
        lost += !write_record();
    assert_true(lost > 3);
    for (u32 i = 0; i < first; i++)
        assert_true(read_record(false) && got.record.number == i);
    assert_int_equal(cursor.lost, 0);
    read_all(false);
    assert_int_equal(cursor.lost, lost);
    sensor_ring_release(data, cursor.at);
    for (u32 i = 0; i < 20; i++)
        assert_true(write_record());
    read_all(false);
    assert_int_equal(cursor.lost, lost);
    expect_all_counted();
}

// Larger than a block, and as large as one.
static void test_sizes(void **state UNUSED)
{
    static u8 bytes[BYTES];
    u32 most = BLOCK_BYTES - sizeof(struct sensor_record);
    make(false);
    assert_true(sensor_ring_write(data, layout(), 1, bytes, most));
    assert_false(sensor_ring_write(data, layout(), 2, bytes, most + 1));
    assert_false(sensor_ring_write(data, layout(), 3, bytes, UINT32_MAX));
    assert_true(sensor_ring_write(data, layout(), 4, bytes, 0));
    assert_true(sensor_ring_cursor_next(&cursor, &view, false, &got.record));
    assert_int_equal(got.record.size, BLOCK_BYTES);
    assert_true(sensor_ring_cursor_next(&cursor, &view, false, &got.record));
    assert_true(got.record.type == 4 && got.record.size == sizeof(got.record));
    assert_int_equal(cursor.lost, 2);
}

// --- handlers and death

static void write_one(void)
{
    write_record();
}

static u32 handled;

static void write_some(void)
{
    for (u32 i = 0; i < handled; i++) {
        u32 n = written++;
        u8 bytes[64];
        memset(bytes, 200, sizeof(bytes));
        sensor_ring_write(data, layout(), 200, bytes, size_of(n));
    }
}

#define STRIDE 3u // signals are slow

// `handled` records between any two instructions of each of some writes
// (several records: between each third two, from random ones on): all come, in
// the order of their times.
static void interrupt_everywhere(bool stops)
{
    bool happened = true;
    u32 stride = handled > 1 ? STRIDE : 1;
    u32 records = 0;
    make(stops);
    for (u32 step = random_below(stride); happened; step += stride) {
        struct sensor_record *r = &got.record;
        u64 time = 0;
        u32 own = 0, handlers = 0;
        happened = step_into(write_one, step, write_some);
        while (sensor_ring_cursor_next(&cursor, &view, false, r)) {
            assert_true(sensor_wide_read(&r->time) >= time);
            time = sensor_wide_read(&r->time);
            *(r->type == 200 ? &handlers : &own) += 1;
        }
        assert_int_equal(ring->published, ring->taken.at);
        assert_int_equal(ring->depth, 0);
        if (handled < 50)
            assert_true(own == 1 && handlers == (happened ? handled : 0));
        records += own + handlers;
        sensor_ring_release(data, cursor.at);
        assert_true(step < 2000);
    }
    assert_int_equal(cursor.read, records);
    expect_all_counted();
    assert_true((cursor.lost > 0) == (handled > 50));
}

static void test_interrupted(void **state UNUSED)
{
    for (u32 stops = 0; stops < 2; stops++) {
        handled = 1;
        interrupt_everywhere(stops);
        handled = 7;
        interrupt_everywhere(stops);
        handled = 200; // more than the ring has room for
        interrupt_everywhere(stops);
    }
}

static void test_killed(void **state UNUSED)
{
    bool killed = true;
    for (u32 step = 0; killed; step++) {
        make(false);
        for (u32 i = 0; i < 5; i++)
            write_record();
        killed = step_into(write_one, step, NULL);
        read_all(false);
        assert_true(cursor.read >= 5);
        read_all(true);
        expect_all_counted();
        assert_true(cursor.read + cursor.lost <= 6);
    }
}

// --- while it is written

static bool stop;

static void *write_always(void *arg UNUSED)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        write_record();
    return NULL;
}

// (The reader's copy races with the writer by design.)
static void test_two_threads(void **state UNUSED)
{
    pthread_t writer;
    make(false);
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&writer, NULL, write_always, NULL), 0);
    while (cursor.read < 20000)
        read_record(false);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(writer, NULL);
    read_all(true);
    expect_all_counted();
}

static void test_spoilt(void **state UNUSED)
{
    u32 spoilt = 0;
    for (u32 round = 0; round < 2000; round++) {
        make(round % 2);
        for (u32 i = 0; i < 100; i++)
            write_record();
        u32 words = random_below(20) + 1;
        u32 from = round % 3 ? SENSOR_DATA / sizeof(u32) : 0;
        for (u32 i = 0; i < words; i++)
            ((u32 *)data)[from + random_below(round % 3 ? BYTES / 4 : 8)] =
                (u32)random_u64();
        for (u32 i = 0;
             sensor_ring_cursor_next(&cursor, &view, true, &got.record); i++) {
            assert_true(i < BYTES / SENSOR_UNIT);
            assert_true(got.record.size <= BLOCK_BYTES);
        }
        spoilt += cursor.spoilt != 0;
    }
    assert_true(spoilt > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),    cmocka_unit_test(test_overtaken),
        cmocka_unit_test(test_stops),       cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_interrupted), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_two_threads), cmocka_unit_test(test_spoilt),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
