// The rings of traces, as a monitor reads them
// (user/libread/sensor_trace_read.c): each event comes once, as it was written,
// with its number, or is counted as lost; also if the ring is written anew
// between any two instructions of the reader.
#define _GNU_SOURCE
#include "test.h"

#include <strobe/trace.h>

#include "user/libread/sensor_read.h"

#include "stepping.h"

#define PAGES 4u
#define BYTES (PAGES * SENSOR_TRACE_PAGE)
#define FILE_BYTES (SENSOR_DATA + SENSOR_TRACE_PAGE + BYTES)

static u32 file[FILE_BYTES / sizeof(u32)];
static struct sensor_header *const header = (struct sensor_header *)file;
static struct sensor_trace *const shared =
    (struct sensor_trace *)&file[SENSOR_DATA / sizeof(u32)];
static struct sensor_view view;
static struct sensor_ring_cursor cursor;
static bool over;
static u64 last; // the last event's time
static union {
    struct sensor_record record;
    u32 words[64];
} got;

// --- the writer, as kernel/trace/record.c -----------------------------------

static u32 number;                 // of the next event
static u32 first[2 * PAGES];       // of pages
static u32 at = SENSOR_TRACE_PAGE; // in the page that is open
static u64 now;

static u8 *page(u32 n)
{
    return (u8 *)file + SENSOR_DATA + SENSOR_TRACE_PAGE +
           n % PAGES * SENSOR_TRACE_PAGE;
}

static void put(u32 type, const void *fields, u32 bytes)
{
    u32 *record = (u32 *)(page(shared->opened - 1) + at);
    memcpy(record + 1, fields, bytes);
    *record = TRACE_HEAD(now, type, 1 + (bytes + 3) / 4);
    at += 4 + (bytes + 3) / 4 * 4;
}

static void put_time(u32 type, u32 lost)
{
    u32 fields[] = { 17, (u32)now, (u32)(now >> 32), lost };
    put(type, fields, type == TRACE_R_LOST ? 16 : 12);
}

static void free_page(void)
{
    u32 n = shared->freed + 1;
    shared->numbers[n % (2 * PAGES)] = first[n % (2 * PAGES)];
    shared->freed = n;
}

static void open_page(void)
{
    u32 n = shared->opened, lost = shared->lost - shared->reported;
    first[n % (2 * PAGES)] = number - lost;
    if (n - shared->freed == PAGES)
        free_page();
    shared->begun = n + 1;
    memset(page(n), 0, SENSOR_TRACE_PAGE);
    shared->reported = shared->lost;
    at = 0;
    shared->opened = n + 1;
    put_time(lost ? TRACE_R_LOST : TRACE_R_TIME, lost);
}

static void fill_up(void)
{
    for (; at < SENSOR_TRACE_PAGE; at += 4) // one word each
        *(u32 *)(page(shared->opened - 1) + at) = TRACE_HEAD(0, TRACE_R_PAD, 1);
}

static void write_event(void)
{
    u32 fields[2], epoch = (u32)(now >> TRACE_TIME_BITS);
    now += 1 + number % 5000;
    if (at + 16 + 12 > SENSOR_TRACE_PAGE) {
        fill_up();
        open_page();
    } else if (epoch != now >> TRACE_TIME_BITS) {
        put_time(TRACE_R_TIME, 0);
    }
    fields[0] = number;
    fields[1] = ~number;
    put(TRACE_heap_alloc, fields, sizeof(fields));
    number++;
}

static void write_events(u32 count)
{
    while (count--)
        write_event();
}

// There is no room: a page ends before.
static void lose(u32 count)
{
    fill_up();
    shared->lost += count;
    number += count;
}

static void make(void)
{
    memset(file, 0, sizeof(file));
    header->magic = SENSOR_MAGIC;
    header->version = SENSOR_VERSION;
    header->layout.type = SENSOR_RING;
    header->layout.ring.bytes = BYTES;
    header->layout.ring.trace = 1;
    header->data_bytes = sensor_data_bytes(&header->layout);
    assert_null(sensor_view_init(&view, file, sizeof(file)));
    number = 0;
    at = SENSOR_TRACE_PAGE;
    now = 1ull << 33;
    last = 0;
    open_page();
    sensor_ring_cursor_begin(&cursor, &view);
}

// --- the reader -------------------------------------------------------------

static void check_event(void)
{
    const struct sensor_record *r = &got.record;
    assert_int_equal(r->type, TRACE_heap_alloc);
    assert_int_equal(r->size, sizeof(*r) + 3 * sizeof(u32));
    assert_int_equal(r->payload[0], 17);
    assert_int_equal(r->payload[1], r->number);
    assert_int_equal(r->payload[2], ~r->number);
    assert_int_equal(r->number, cursor.next - 1);
    assert_true(sensor_wide_read(&r->time) > last);
    last = sensor_wide_read(&r->time);
}

static bool found;

static void next(void)
{
    found = sensor_ring_cursor_next(&cursor, &view, over, &got.record);
}

static bool read_event(void)
{
    next();
    if (found)
        check_event();
    return found;
}

static void read_all(void)
{
    while (read_event())
        ;
}

static void test_in_order(void **state UNUSED)
{
    make();
    for (u32 i = 0; i < 5000; i++) {
        assert_false(read_event());
        write_event();
        assert_true(read_event() && got.record.number == i);
    }
    assert_true(cursor.read == 5000 && !cursor.lost && !cursor.spoilt);
    assert_int_equal(sensor_view_numbers(&view), 5000);
}

// Losses of the trace, and of the reader; those behind the last event are known
// when the trace has ended.
static void test_losses(void **state UNUSED)
{
    u32 lost = 0;
    make();
    for (u32 i = 0; i < 3000; i++) {
        write_events(random_below(20));
        if (random_below(40) == 0) {
            u32 n = random_below(30);
            lose(n);
            lost += n;
        }
        if (random_below(60) == 0)
            read_all();
    }
    lose(5);
    read_all();
    assert_true(cursor.lost > lost);
    assert_true(cursor.read + cursor.lost < number);
    over = true;
    assert_false(read_event());
    assert_false(read_event());
    over = false;
    assert_int_equal(cursor.read + cursor.lost, number);
    assert_int_equal(cursor.next, number);
    assert_int_equal(cursor.spoilt, 0);
    // One that begins now does not count what was before.
    sensor_ring_cursor_begin(&cursor, &view);
    last = 0;
    assert_true(read_event() && got.record.number > number - 2000);
    assert_int_equal(cursor.lost, 0);
}

static u32 handled;

static void write_handled(void)
{
    write_events(handled);
}

#define STRIDE 5u // signals are slow

// Events between two instructions of a read, each 5th from a random one on: a
// page, or more than the ring has room for.
static void test_overtaken_anywhere(void **state UNUSED)
{
    static const u32 counts[] = { 330, 3000 };
    for (u32 i = 0; i < ARRAY_SIZE(counts); i++) {
        bool happened = true;
        handled = counts[i];
        make();
        for (u32 step = random_below(STRIDE); happened; step += STRIDE) {
            write_events(3000); // the reader is overtaken when it begins
            happened = step_into(next, step, write_handled);
            if (found)
                check_event();
            read_event();
            assert_true(step < 20000);
        }
        read_all();
        assert_int_equal(cursor.read + cursor.lost, number);
        assert_true(cursor.read > 0 && cursor.lost > 0 && !cursor.spoilt);
    }
}

// A file that anybody wrote: each reader ends.
static void test_spoilt(void **state UNUSED)
{
    u32 spoilt = 0;
    for (u32 round = 0; round < 3000; round++) {
        make();
        write_events(random_below(3000));
        u32 words = random_below(20) + 1;
        u32 from = round % 3 ? SENSOR_DATA + SENSOR_TRACE_PAGE : SENSOR_DATA;
        for (u32 i = 0; i < words; i++)
            file[from / sizeof(u32) +
                 random_below(round % 3 ? BYTES / 4 : 12)] = (u32)random_u64();
        sensor_ring_cursor_begin(&cursor, &view);
        for (u32 i = 0;
             sensor_ring_cursor_next(&cursor, &view, true, &got.record); i++) {
            assert_true(i < 2 * BYTES / sizeof(u32));
            assert_true(got.record.size <= sizeof(got));
        }
        spoilt += cursor.spoilt != 0;
        sensor_view_numbers(&view);
    }
    assert_true(spoilt > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_overtaken_anywhere),
        cmocka_unit_test(test_spoilt),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
