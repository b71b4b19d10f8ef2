// Traces with sensors: what is in the text, and in the files for other
// programs, in the order of time; of files that are cut off at each byte, or
// damaged in each.
//
// link: user/libtrace/reader.c user/libtrace/file.c user/libtrace/points.c
// link: user/libtrace/lives.c user/libtrace/spans.c user/libtrace/event_text.c
// link: user/libprofile/functions.c user/libstrobe/core_clock.c
// link: user/libtrace/call_names.c user/libtrace/report.c
// link: user/libtrace/summary.c user/libtrace/sensed.c
// link: user/libstrobe/sensor_recording.c user/libstrobe/sensor_print.c
// link: user/libstrobe/table.c user/libstrobe/messages.c
// link: tools/strobe-src/trace_tracks.c
// link: tools/strobe-src/trace_ctf.c tools/strobe-src/trace_ctf_sensors.c
// link: tools/strobe-src/trace_dat.c tools/strobe-src/trace_dat_events.c
// link: tools/strobe-src/trace_dat_linux.c
// link: tools/strobe-src/trace_perfetto.c tools/strobe-src/trace_flows.c
// link: tools/strobe-src/perfetto_packet.c tools/strobe-src/protobuf.c
#include "test.h"
#include "tests/host/trace_made.h"

#include "tools/strobe-src/trace_export.h"
#include "user/libtrace/report.h"

static char directory[] = "/tmp/test_trace_sensors.XXXXXX";

// --- the file ---------------------------------------------------------------

enum { FRAMES, STEPS, MISSES, COST, SENSORS };

static void begin_sensors(void)
{
    made.chunk = made.used + 4;
    add_chunk(TRACE_FILE_SENSORS, "", 0);
}

// A chunk of two pieces in that of the trace.
static void put(enum recording_kind kind, const void *body, u32 size,
                const void *more, u32 more_size)
{
    struct recording_chunk c = { kind, (size + more_size + 3) / 4 * 4 };
    u32 rest = c.bytes - size - more_size;

    add(&c, sizeof(c));
    add(body, size);
    add(more, more_size);
    add("\0\0\0", rest);
    grow_word(made.chunk, sizeof(c) + c.bytes);
}

static void put_sensor(u32 source, const char *path, const char *text,
                       struct sensor_layout layout)
{
    char strings[512];
    struct recording_sensor s = {
        .source = source,
        .owner = 7,
        .layout = layout,
        .tsc_hz = { 1000000000, 0 },
        .path_bytes = (u32)strlen(path),
        .text_bytes = (u32)strlen(text),
    };

    snprintf(strings, sizeof(strings), "%s%s", path, text);
    put(RECORDING_SENSOR, &s, sizeof(s), strings, (u32)strlen(strings));
}

static struct sensor_wide wide(u64 n)
{
    return (struct sensor_wide){ (u32)n, (u32)(n >> 32) };
}

static void put_event(u32 number, u64 time, u16 type, u32 a, u32 b)
{
    struct {
        struct recording_event head;
        struct sensor_event event;
    } e = { { FRAMES, number },
            { .thread = 7, .type = type, .bytes = 8, .time = wide(time) } };
    u32 payload[] = { a, b };

    put(RECORDING_EVENT, &e, sizeof(e), payload, sizeof(payload));
}

static void put_record(u32 number, u64 time, u16 place)
{
    struct {
        struct recording_record head;
        struct sensor_record record;
    } r = { { STEPS },
            { .size = sizeof(struct sensor_record) + 2,
              .type = 3,
              .number = number,
              .time = wide(time) } };

    put(RECORDING_RECORD, &r, sizeof(r), &place, sizeof(place));
}

static void put_time(u64 tsc)
{
    struct recording_time t = { wide(1), wide(tsc) };

    put(RECORDING_TIME, &t, sizeof(t), "", 0);
}

static void put_values(void)
{
    struct recording_scalar s = { MISSES, { 42, 0 } };
    struct recording_histogram h = { .source = COST,
                                     .sum = { 1000, 0 },
                                     .least = 400,
                                     .most = 600,
                                     .cells = 1 };
    struct recording_cell cell = { 5, { 2, 0 }, { 0, 0 } };

    put(RECORDING_SCALAR, &s, sizeof(s), "", 0);
    put(RECORDING_HISTOGRAM, &h, sizeof(h), &cell, sizeof(cell));
}

// The events of make(), and between them those of four sensors: a list of which
// five events are lost and one is spoilt, a ring, a counter, and a histogram.
static void make_sensed(void)
{
    struct sensor_axis axis = { SENSOR_LINEAR, 0, 100, 16 };
    struct recording_loss loss = { FRAMES, { 5, 0 }, { 1, 0 } };

    make_head(1);
    begin_sensors();
    put_sensor(FRAMES, "/sensors/app/frames",
               "frames\n#type frame 10\nnumber, u32\nquality, s32\n",
               (struct sensor_layout){ .type = SENSOR_LIST,
                                       .list = { 256, 64, SENSOR_CLOCK_TSC } });
    put_sensor(
        STEPS, "/sensors/app/steps", "#type step 3\na.b, u8\na-b, u8\n",
        (struct sensor_layout){ .type = SENSOR_RING, .ring = { 4096, 0 } });
    put_sensor(MISSES, "/sensors/app/misses", "",
               (struct sensor_layout){ .type = SENSOR_SCALAR,
                                       .scalar = { SENSOR_COUNTER, 64 } });
    put_sensor(COST, "/sensors/app/cost", "",
               (struct sensor_layout){ .type = SENSOR_HISTOGRAM,
                                       .histogram = { 1, 0, axis, { 0 } } });
    put_time(START + 0x80);
    put_event(0, START + 0x45, 10, 3, (u32)-2);
    begin_sensors();
    put_time(START + 0xe8);
    put(RECORDING_LOSS, &loss, sizeof(loss), "", 0);
    put_event(7, START + 0x95, 10, 4, 1);
    put_event(8, START + 0xa0, 99, 0xabcd, 17);
    put_record(0, START + 0x75, 0x0201);
    put_values();
    make_events();
}

// --- text -------------------------------------------------------------------

static char *text_of(bool summary, struct trace_choice choice)
{
    static struct trace_file f;
    char *text;
    size_t length;

    if (trace_file_open(&f, path))
        return NULL;
    FILE *out = open_memstream(&text, &length);
    if (summary)
        trace_summary(out, &f);
    else
        trace_report(out, &f, &choice);
    fclose(out);
    trace_file_close(&f);
    return text;
}

// The lines have these parts, in this order, and no others have `with`.
static void has_in_order(const char *text, const char *with,
                         const char *const *parts)
{
    u32 count = 0;
    const char *at = text;

    for (; *parts; parts++, count++) {
        const char *next = strstr(at, *parts);
        if (!next)
            fail_msg("no '%s', or not there, in:\n%s", *parts, text);
        at = next + 1;
    }
    assert_int_equal(count_of(text, with), count);
}

static void the_report_is_in_order(void **state UNUSED)
{
    static const char *const parts[] = {
        "syscall/enter  read\n",
        "0.000000053            5   0  dd:7                 app/frames     "
        "frame "
        "number=3 quality=-2\n",
        "irq/enter      48\n",
        "irq/return    \n",
        "0.000000101            5   -  -                    app/steps      "
        "step "
        "a.b=1 a-b=2\n",
        "dd:7 waits -> [idle]\n",
        "  -  -                    app/frames     5 events are missing here, 1 "
        "spoilt ones\n",
        "app/frames     frame number=4 quality=1\n",
        "app/frames     type 99 0000abcd 00000011\n",
        "sched/switch   [idle] -> dd:7\n",
        "syscall/exit   read = -5\n",
        "  -  -                    app/misses     value=42\n",
        "app/cost       sum=1000 least=400 most=600 changed_bins=1\n",
        NULL,
    };
    static const char *const own[] = { "app/frames     frame number=3",
                                       "app/frames     5 events are",
                                       "app/frames     frame number=4",
                                       "app/frames     type 99", NULL };

    make_sensed();
    write_file(made.bytes, made.used);
    char *text = text_of(false, (struct trace_choice){ 0 });
    has(text, "# sensors: 4, with 6 events and values\n");
    has(text, "MISSING: 5 events of app/frames, which were overwritten before "
              "they were read (-i); 1 were spoilt\n");
    const char *at = strstr(text, "Thread");
    for (u32 i = 0; parts[i]; i++) {
        at = strstr(at, parts[i]);
        if (!at)
            fail_msg("no '%s', or not there, in:\n%s", parts[i], text);
    }
    assert_int_equal(count_of(text, " app/"), 7 + 1);
    free(text);
    // Of a thread: what it posted, and what is missing.
    text =
        text_of(false, (struct trace_choice){ .by_thread = true, .thread = 7 });
    has_in_order(strstr(text, "Thread"), " app/", own);
    free(text);
    text = text_of(false, (struct trace_choice){ .by_cpu = true, .cpu = 1 });
    assert_null(strstr(strstr(text, "Thread"), " app/"));
    free(text);
}

static void the_summary_counts_them(void **state UNUSED)
{
    make_sensed();
    write_file(made.bytes, made.used);
    char *text = text_of(true, (struct trace_choice){ 0 });
    has(text,
        "\napp/frames                       3     12500000         5      "
        "   1  list\n");
    has(text,
        "\napp/steps                        1      4166666         0      "
        "   0  ring\n");
    has(text,
        "\napp/cost                         1      4166666         0      "
        "   0  histogram\n");
    has(text, "# 12 events in ");
    free(text);
}

// --- other programs ---------------------------------------------------------

// Writes and removes them. NULL: the file cannot be opened.
static char *ctf_metadata(uint8_t *streams[SENSORS], size_t sizes[SENSORS])
{
    static struct trace_file f;
    char name[16];
    size_t size;
    int error;

    memset(streams, 0, SENSORS * sizeof(*streams));
    if (trace_file_open(&f, path))
        return NULL;
    assert_int_equal(rmdir(directory), 0);
    trace_ctf(directory, &f, &error);
    assert_int_equal(error, 0);
    for (u32 i = 0; i < TRACE_CPUS_MAX; i++) {
        snprintf(name, sizeof(name), "sensor_%u", (unsigned)i);
        uint8_t *bytes = take_export(directory, name, &size);
        if (i < SENSORS) {
            streams[i] = bytes;
            sizes[i] = size;
        } else {
            free(bytes);
        }
        snprintf(name, sizeof(name), "cpu_%u", (unsigned)i);
        free(take_export(directory, name, &size));
    }
    trace_file_close(&f);
    return (char *)take_export(directory, "metadata", &size);
}

static void free_streams(uint8_t *streams[SENSORS])
{
    for (u32 i = 0; i < SENSORS; i++)
        free(streams[i]);
}

#define CONTEXT 52u // bytes before a packet's events

static void streams_have_each_sensor(void **state UNUSED)
{
    uint8_t *streams[SENSORS];
    size_t sizes[SENSORS];
    uint64_t lost;

    make_sensed();
    write_file(made.bytes, made.used);
    char *text = ctf_metadata(streams, sizes);
    has(text, "sensor_1 = \"app/steps\";");
    has(text, "id = 10; name = \"app/frames:frame\"; stream_id = 1;\n\tfields "
              ":= struct { uint32_t _number; int32_t _quality; };");
    has(text, "id = 65535; name = \"app/frames:other\"; stream_id = 1;");
    // Names that the language does not allow, and that would be the same.
    has(text, "name = \"app/steps:step\"; stream_id = 2;\n\tfields := struct { "
              "uint8_t _a_b; uint8_t field_1; };");
    has(text, "name = \"app/misses\"; stream_id = 3;\n\tfields := struct { "
              "uint64_t _value; };");
    has(text, "name = \"app/cost\"; stream_id = 4;");
    free(text);
    // An empty packet, one event, the loss, two events, one of an unknown type.
    u32 head = 2 + 8 + 4 + 5 + 1;
    assert_int_equal(sizes[FRAMES], 4 * CONTEXT + 3 * head + 2 * 8 + 4 + 8);
    memcpy(&lost, streams[FRAMES] + sizes[FRAMES] - 2 * head - 8 - 12 - 12, 8);
    assert_int_equal(lost, 6);
    assert_int_equal(sizes[STEPS], 2 * CONTEXT + 10 + 2);
    assert_int_equal(streams[STEPS][sizes[STEPS] - 2], 1);
    assert_int_equal(sizes[MISSES], 2 * CONTEXT + 10 + 8);
    assert_int_equal(sizes[COST], 2 * CONTEXT + 10 + 16);
    free_streams(streams);
}

// --- damage -----------------------------------------------------------------

// All that is written of the file, which is there. Returns the lines of sensors
// in the report.
static u32 write_all(void)
{
    uint8_t *streams[SENSORS];
    size_t sizes[SENSORS], size;
    char *text = text_of(false, (struct trace_choice){ 0 });
    u32 lines = 0;

    if (!text)
        return 0;
    lines = count_of(text, " app/");
    free(text);
    free(text_of(true, (struct trace_choice){ 0 }));
    free(exported(trace_perfetto, &size));
    free(exported(trace_dat, &size));
    free(ctf_metadata(streams, sizes));
    free_streams(streams);
    return lines;
}

// The part of the sensors alone: the others' tests have the rest.
static u32 begin_of_sensors(void)
{
    make_head(1);
    return made.used;
}

static void what_is_whole_is_written(void **state UNUSED)
{
    u32 lines = 0, n = begin_of_sensors();

    make_sensed();
    for (u32 end = made.chunk; n <= end; n++) {
        write_file(made.bytes, n);
        u32 now = write_all();
        assert_true(now >= lines);
        lines = now;
    }
    assert_int_equal(lines, 8);
}

static void ignore(void *arg UNUSED, const struct trace_event *e UNUSED)
{
}

static void damage_does_no_harm(void **state UNUSED)
{
    static struct trace_file f;
    u32 n = begin_of_sensors(), told = 0;

    make_sensed();
    for (u32 end = made.chunk; n < end; n++) {
        made.bytes[n] ^= 0xff;
        write_file(made.bytes, made.used);
        write_all();
        if (!trace_file_open(&f, path)) {
            told += trace_file_events(&f, ignore, NULL) != NULL;
            trace_file_close(&f);
        }
        made.bytes[n] ^= 0xff;
    }
    assert_true(told > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_report_is_in_order),
        cmocka_unit_test(the_summary_counts_them),
        cmocka_unit_test(streams_have_each_sensor),
        cmocka_unit_test(what_is_whole_is_written),
        cmocka_unit_test(damage_does_no_harm),
    };

    if (!mkdtemp(directory))
        return 1;
    int failed = cmocka_run_group_tests(tests, begin_file, remove_file);
    rmdir(directory);
    return failed;
}
