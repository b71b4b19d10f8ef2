// Traces for other programs: what is in the streams of files that are whole,
// cut off at each byte, or damaged in each. For Perfetto:
// test_trace_perfetto.c.
//
// link: user/libtrace/reader.c user/libtrace/file.c user/libtrace/points.c
// link: user/libprofile/functions.c
// link: user/libtrace/lives.c user/libtrace/spans.c user/libtrace/event_text.c
// link: user/libtrace/call_names.c user/libstrobe/table.c
// link: tools/strobe-src/trace_ctf.c
// link: user/libtrace/sensed.c user/libstrobe/sensor_recording.c
// link: user/libstrobe/sensor_print.c user/libstrobe/messages.c
// link: tools/strobe-src/trace_ctf_sensors.c
#include "test.h"
#include "tests/host/trace_made.h"

#include "tools/strobe-src/trace_export.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[] = "/tmp/test_trace_ctf.XXXXXX";

// --- streams ----------------------------------------------------------------

struct stream {
    uint32_t packets, events, by_type[64];
    uint64_t lost, last;
};

static uint64_t number_at(const uint8_t *p, uint32_t bytes)
{
    uint64_t n = 0;

    memcpy(&n, p, bytes);
    return n;
}

static uint32_t fields_size(uint32_t type)
{
    static const uint32_t sizes[] = {
#define POINT(group, name, fields, when) sizeof(struct trace_##group##_##name),
#include <strobe/points.def>
#undef POINT
    };
    assert_true(type < TRACE_POINTS || type == TRACE_R_ENTRY ||
                type == TRACE_R_EXIT || type == TRACE_R_CALL);
    return type < TRACE_POINTS ? sizes[type] : type == TRACE_R_EXIT ? 12 : 8;
}

static void take_events(struct stream *s, const uint8_t *p, const uint8_t *end,
                        uint64_t until)
{
    while (p < end) {
        assert_true(end - p > 14);
        uint64_t time = number_at(p + 1, 8);
        assert_true(time >= s->last && time <= until);
        s->last = time;
        s->events++;
        s->by_type[*p]++;
        uint32_t fields = fields_size(*p);
        p += 13;
        p += strnlen((const char *)p, (size_t)(end - p)) + 1 + fields;
    }
    assert_ptr_equal(p, end);
}

static void take_packets(struct stream *s, const uint8_t *p, size_t size,
                         uint32_t cpu)
{
    const uint8_t *end = p + size;

    for (uint64_t bytes; p < end; p += bytes, s->packets++) {
        assert_true(end - p >= 52);
        assert_int_equal(number_at(p, 4), 0xc1fc1fc1);
        assert_int_equal(number_at(p + 4, 4), 0);
        bytes = number_at(p + 24, 8) / 8;
        assert_int_equal(number_at(p + 32, 8), bytes * 8);
        assert_true(bytes >= 52 && bytes <= (uint64_t)(end - p));
        assert_true(number_at(p + 8, 8) >= s->last);
        assert_true(number_at(p + 16, 8) >= number_at(p + 8, 8));
        assert_true(number_at(p + 40, 8) >= s->lost);
        s->lost = number_at(p + 40, 8);
        assert_int_equal(number_at(p + 48, 4), cpu);
        take_events(s, p + 52, p + bytes, number_at(p + 16, 8));
        s->last = number_at(p + 16, 8);
    }
}

// Of all CPUs. False: the file cannot be opened.
static bool write_streams(struct stream *all, char **metadata)
{
    static struct trace_file f;
    char name[16];
    size_t size;
    int error;

    *metadata = NULL;
    memset(all, 0, TRACE_CPUS_MAX * sizeof(*all));
    if (trace_file_open(&f, path))
        return false;
    assert_int_equal(rmdir(directory), 0);
    trace_ctf(directory, &f, &error);
    assert_int_equal(error, 0);
    trace_file_close(&f);
    for (uint32_t i = 0; i < TRACE_CPUS_MAX; i++) {
        snprintf(name, sizeof(name), "cpu_%u", (unsigned)i);
        uint8_t *bytes = take_export(directory, name, &size);
        if (bytes)
            take_packets(&all[i], bytes, size, i);
        free(bytes);
    }
    *metadata = (char *)take_export(directory, "metadata", &size);
    assert_non_null(*metadata);
    return true;
}

static struct stream streams[TRACE_CPUS_MAX];

static void streams_have_all_events(void **state UNUSED)
{
    char *metadata;

    make();
    write_file(made.bytes, made.used);
    assert_true(write_streams(streams, &metadata));
    assert_int_equal(streams[0].events, EVENTS);
    assert_int_equal(streams[0].by_type[TRACE_sched_switch], 4);
    assert_int_equal(streams[0].last, START + 0x100);
    assert_int_equal(streams[0].lost, 0);
    assert_int_equal(strncmp(metadata, "/* CTF 1.8 */\n", 14), 0);
    has(metadata, "name = \"sched/wake\"; stream_id = 0;\n"
                  "\tfields := struct { uint32_t _thread; uint32_t _cpu; "
                  "uint32_t _at; };\n");
    has(metadata, "command = \"dd if=x\";");
    has(metadata, "freq = 1000000000;");
    has(metadata, "cut_off = 0;");
    free(metadata);
}

static void losses_are_between_packets(void **state UNUSED)
{
    char *metadata;

    make_lossy();
    write_file(made.bytes, made.used);
    assert_true(write_streams(streams, &metadata));
    assert_int_equal(streams[0].events, 5);
    assert_int_equal(streams[0].lost, LOST);
    // An empty one, events, an empty one with the loss, events.
    assert_int_equal(streams[0].packets, 4);
    assert_int_equal(streams[1].events, 3);
    assert_int_equal(streams[1].lost, 0);
    assert_int_equal(streams[1].packets, 2);
    has(metadata, "lost_after_the_last_events = 2;");
    free(metadata);
}

static void a_long_stream_is_many_packets(void **state UNUSED)
{
    char *metadata;
    uint32_t n = 2500;

    make_head(1);
    begin_blocks();
    begin_block(0, START + 0x8000);
    add_time(START, 7);
    for (uint32_t i = 1; i <= n; i++)
        add_words(START + i, TRACE_irq_exit, 48, 0, 1);
    write_file(made.bytes, made.used);
    assert_true(write_streams(streams, &metadata));
    assert_int_equal(streams[0].events, n);
    assert_true(streams[0].packets > 1);
    has(metadata, "cut_off = 1;");
    free(metadata);
}

static void a_directory_that_is_there_is_left_alone(void **state UNUSED)
{
    static struct trace_file f;
    int error;

    make();
    write_file(made.bytes, made.used);
    assert_null(trace_file_open(&f, path));
    trace_ctf(directory, &f, &error);
    assert_int_equal(error, EEXIST);
    trace_ctf("/nowhere/at/all", &f, &error);
    assert_int_equal(error, ENOENT);
    trace_file_close(&f);
}

// --- damage -----------------------------------------------------------------

static void what_is_whole_is_written(void **state UNUSED)
{
    uint32_t events = 0;
    char *metadata;

    make();
    for (uint32_t n = 0; n <= made.used; n++) {
        write_file(made.bytes, n);
        if (!write_streams(streams, &metadata))
            continue;
        assert_true(streams[0].events >= events);
        events = streams[0].events;
        free(metadata);
    }
    assert_int_equal(events, EVENTS);
}

static void damage_does_no_harm(void **state UNUSED)
{
    char *metadata;

    make_lossy();
    for (uint32_t n = 0; n < made.used; n++) {
        made.bytes[n] ^= 0xff;
        write_file(made.bytes, made.used);
        write_streams(streams, &metadata);
        free(metadata);
        made.bytes[n] ^= 0xff;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_have_all_events),
        cmocka_unit_test(losses_are_between_packets),
        cmocka_unit_test(a_long_stream_is_many_packets),
        cmocka_unit_test(a_directory_that_is_there_is_left_alone),
        cmocka_unit_test(what_is_whole_is_written),
        cmocka_unit_test(damage_does_no_harm),
    };

    if (!mkdtemp(directory))
        return 1;
    int failed = cmocka_run_group_tests(tests, begin_file, remove_file);
    rmdir(directory);
    return failed;
}
