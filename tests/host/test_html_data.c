// The data of the flame graph page, from a synthetic profile; names of any
// bytes; and the bins of the timeline.
// link: user/libprofile/check.c user/libprofile/binomial.c
// link: user/libstrobe/core_clock.c
// link: tools/strobe-src/traced.c user/libprofile/call_paths.c
// link: user/libprofile/call_tables.c user/libprofile/calls_file.c
// link: user/libprofile/shares.c
// link: user/libprofile/mapping.c user/libprofile/images_read.c
// link: tools/strobe-src/html_data.c tools/strobe-src/timeline.c
// link: tools/strobe-src/oracle.c
// link: tools/strobe-src/oracle_flat.c
// link: tools/strobe-src/oracle_parse.c
// link: tools/strobe-src/oracle_programs.c
// link: tools/strobe-src/profile.c
// link: tools/strobe-src/elves.c user/libprofile/perf_read.c
// link: user/libprofile/perf_walk.c user/libprofile/samples.c
// link: user/libprofile/stream.c user/libprofile/chains.c
// link: user/libprofile/images.c user/libprofile/programs.c
// link: user/libprofile/views.c user/libprofile/tree.c
// link: user/libprofile/header.c
// link: user/libprofile/samples_cut.c user/libstrobe/table.c
// link: user/libstrobe/messages.c user/libprofile/user_chain.c
// link: user/libprofile/sources.c user/libstrobe/kbox.c
// link: user/libstrobe/sysinfo.c user/libprofile/choose_event.c
// link: user/libprofile/perf_programs.c tools/strobe-src/inlines.c
// link: tools/strobe-src/lines.c tools/strobe-src/names.c
// link: tools/strobe-src/places.c
// link: tools/strobe-src/coprocess.c tools/strobe-src/header_lines.c
// link: user/libprofile/task_times.c
#define _GNU_SOURCE
#include "tools/strobe-src/html_data.h" // before cmocka, which has a fail(), too
#include "tools/strobe-src/timeline.h"

#include <unistd.h>

#include "perf_made.h"

static struct made made;

static char *data_of_made(void)
{
    static struct profile profile;
    const struct common common = { 0 };
    char path[] = "/tmp/test_html_data.XXXXXX";
    int fd = mkstemp(path);
    char *json;
    size_t size;

    made_end(&made);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, made.bytes, made.size), made.size);
    close(fd);
    profile_open_all(&profile, path, &common);
    unlink(path);
    FILE *out = open_memstream(&json, &size);
    html_data(&profile, out);
    fclose(out);
    profile_close(&profile);
    return json;
}

static void contains(const char *json, const char *part)
{
    if (strstr(json, part) == NULL)
        fail_msg("no %s in %s", part, json);
}

static void add_command(const char *command)
{
    u8 text[64] = { 1, 0, 0, 0 };

    text[4] = (u8)strlen(command) + 1;
    memcpy(text + 8, command, strlen(command));
    made_own(&made, PERF_STROBE_FEATURE + PERF_FEATURE_COMMAND, text,
             sizeof(text));
}

// Two tasks of two programs; the first is sampled twice at the same chain.
static void parts(void **state UNUSED)
{
    static const u64 deep[] = { PERF_CONTEXT_USER, 0x8049010, 0x8049100 };
    static const u64 plain[] = { PERF_CONTEXT_USER, 0x8049100 };
    struct made_sample s = { .task = 7,
                             .thread = 7,
                             .time = 1000,
                             .period = 1,
                             .chain = deep,
                             .depth = 3 };

    made_begin(&made);
    add_command("lua x");
    made_comm(&made, 7, "lua", true, 0);
    made_mmap(&made, 7, "/bin/lua", 0x8048000, 0x11, 0);
    made_comm(&made, 9, "sh", true, 0);
    made_mmap(&made, 9, "/bin/sh", 0x8048000, 0x22, 0);
    made_sample(&made, &s);
    s.time = 2000;
    s.period = 4;
    made_sample(&made, &s);
    s.task = s.thread = 9;
    s.period = 7;
    s.cpu = 1;
    s.chain = plain;
    s.depth = 2;
    s.time = 1000001000;
    made_sample(&made, &s);
    char *json = data_of_made();
    contains(json, "{\"title\":\"lua x\",\"events\":[{\"name\":\"event-1\","
                   "\"unit\":\"ns\",\"total\":12,\"samples\":3,\"facts\":[["
                   "\"Samples\",\"3 taken, ");
    contains(json, ",\"seconds\":1.000000,\"cpus\":2,");
    contains(json, "\"/bin/lua\",\"/bin/sh\"]");
    contains(json, "\"nodes\":{\"parent\":[0,0,1,0],\"symbol\":[0,");
    contains(json, "\"tasks\":[[7,\"lua\"],[9,\"sh\"]]");
    contains(json, "\"origin\":{\"task\":[0,1],\"cpu\":[0,1],\"mode\":[0,0],"
                   "\"event\":[0,0]}");
    contains(json, "\"bins\":[[2,0,2,5,3,1,1,7]]}");
    free(json);
}

// As xargs in BusyBox becomes md5sum: the same file, another program.
static void program_by_time(void **state UNUSED)
{
    static const u64 chain[] = { PERF_CONTEXT_USER, 0x8049010 };
    struct made_sample s = { .task = 7,
                             .thread = 7,
                             .time = 5,
                             .period = 3,
                             .chain = chain,
                             .depth = 2 };

    made_begin(&made);
    made_comm(&made, 7, "xargs", true, 0);
    made_mmap(&made, 7, "/bin/busybox", 0x8048000, 0x11, 0);
    made_sample(&made, &s);
    made_comm(&made, 7, "md5sum", true, 10);
    made_mmap(&made, 7, "/bin/busybox", 0x8048000, 0x11, 10);
    s.time = 15;
    made_sample(&made, &s);
    char *json = data_of_made();
    contains(json, "\"tasks\":[[7,\"md5sum\"],[7,\"xargs\"]]");
    contains(json, "\"origin\":{\"task\":[0,1],");
    contains(json, "\"bins\":[[1,0,1,3,1,1,1,3]]}");
    free(json);
}

// Two events: their samples are separate, their paths and tasks are shared.
static void several_events(void **state UNUSED)
{
    static const u64 ids[] = { 5, 9 };
    static const u64 chain[] = { PERF_CONTEXT_USER, 0x8049010 };
    struct made_sample s = { .task = 7,
                             .thread = 7,
                             .time = 5,
                             .period = 4,
                             .chain = chain,
                             .depth = 2,
                             .id = 9 };
    const struct sprofile_info info = { .source = "pmc", .event = "cycles" };
    static const struct perf_remote remote = { .ended = 1 };

    made_begin_events(&made, ids, ARRAY_SIZE(ids));
    made_own(&made, PERF_STROBE_INFO | 1 << PERF_STROBE_EVENT_SHIFT, &info,
             sizeof(info));
    made_own(&made, PERF_STROBE_REMOTE, &remote, sizeof(remote));
    made_comm(&made, 7, "lua", true, 0);
    made_mmap(&made, 7, "/bin/lua", 0x8048000, 0x11, 0);
    made_sample(&made, &s);
    made_sample(&made, &s);
    s.id = 5;
    s.period = 10;
    made_sample(&made, &s);
    char *json = data_of_made();
    contains(json, "{\"name\":\"event-1\",\"unit\":\"ns\",\"total\":10,"
                   "\"samples\":1,\"facts\":[[\"Event\","
                   "\"event-1, 1 of 2\"],[\"Samples\",\"1 taken,");
    contains(json, "{\"name\":\"cycles\",\"unit\":\"cycles\",\"total\":8,"
                   "\"samples\":2,\"facts\":[[\"Event\",");
    // A line that continues another is no fact of its own.
    contains(json, ", 0 sent again sending cost 0.000 % of the CPU");
    contains(json, "\"tasks\":[[7,\"lua\"]]");
    contains(json, "\"mode\":[0,0],\"event\":[0,1]}");
    contains(json, "\"bins\":[[1,0,1,10,1,1,2,8]]}");
    free(json);
}

static void strange_names(void **state UNUSED)
{
    static const u64 chain[] = { PERF_CONTEXT_USER, 0x8049010 };
    const struct made_sample s = {
        .task = 7, .thread = 7, .time = 5, .chain = chain, .depth = 2
    };

    made_begin(&made);
    add_command("\"\\\n\xff\xc3\xa9");
    made_comm(&made, 7, "a\"\x01\xe2\x82", true, 0);
    made_mmap(&made, 7, "/\xf0(", 0x8048000, 0x11, 0);
    made_sample(&made, &s);
    char *json = data_of_made();
    contains(json, "{\"title\":\"\\\"\\\\\\u000a\\u00ff\xc3\xa9\"");
    contains(json, "[[7,\"a\\\"\\u0001\\u00e2\\u0082\"]]");
    contains(json, "\"/\\u00f0(\"");
    free(json);
}

static void no_samples(void **state UNUSED)
{
    made_begin(&made);
    made_comm(&made, 7, "lua", true, 0);
    char *json = data_of_made();
    contains(json, "\"total\":0,");
    contains(json, ",\"seconds\":0.000000,\"cpus\":1,");
    contains(json,
             "\"tasks\":[],\"origin\":{\"task\":[],\"cpu\":[],\"mode\":[],"
             "\"event\":[]},\"bins\":[[]]}");
    free(json);
}

static void bins(void **state UNUSED)
{
    struct timed_sample list[4000] = { 0 };

    for (u32 i = 0; i < ARRAY_SIZE(list); i++)
        list[i].time = 5000000 + 1000ull * i;
    struct timeline t = timeline_make(list, ARRAY_SIZE(list), 1, 0);
    assert_true(t.bins > 100 && t.bins <= 1000);
    u32 in_bin[1000] = { 0 };
    for (u32 i = 0; i < ARRAY_SIZE(list); i++) {
        u32 bin = timeline_bin(&t, list[i].time);
        assert_true(bin < t.bins);
        in_bin[bin]++;
    }
    for (u32 b = 0; b < t.bins; b++)
        assert_in_range(in_bin[b], ARRAY_SIZE(list) / t.bins - 1,
                        ARRAY_SIZE(list) / t.bins + 2);
    assert_int_equal(timeline_bin(&t, 0), 0);
    assert_int_equal(timeline_bin(&t, UINT64_MAX), t.bins - 1);
    // More CPUs give fewer bins; one sample or none gives one bin.
    assert_true(timeline_make(list, 80, 8, 0).bins <
                timeline_make(list, 80, 1, 0).bins);
    assert_int_equal(timeline_make(list, 1, 1, 0).bins, 1);
    assert_int_equal(timeline_make(NULL, 0, 4, 0).bins, 1);
}

// Ticks with jitter: all bins but the last have the same number.
static void bins_of_ticks(void **state UNUSED)
{
    enum { TICKS = 1003, PERIOD = 1000 };
    struct timed_sample list[TICKS] = { 0 };
    u32 in_bin[TICKS] = { 0 };

    for (u32 i = 0; i < TICKS; i++)
        list[i].time = 7000000 + PERIOD * i + i * 7919 % 200 - 100;
    struct timeline t = timeline_make(list, TICKS, 1, PERIOD);
    assert_true(t.bins > 100);
    assert_int_equal(t.width % PERIOD, 0);
    for (u32 i = 0; i < TICKS; i++)
        in_bin[timeline_bin(&t, list[i].time)]++;
    for (u32 b = 0; b + 1 < t.bins; b++)
        assert_int_equal(in_bin[b], t.width / PERIOD);
    assert_in_range(in_bin[t.bins - 1], 1, t.width / PERIOD);
    // A period longer than the recording is ignored.
    assert_int_equal(timeline_make(list, 80, 1, 1u << 30).bins,
                     timeline_make(list, 80, 1, 0).bins);
}

// Any times, as in a damaged file.
static void bins_of_any_time(void **state UNUSED)
{
    static const u64 times[] = { 0,         1, 999, 1ull << 63, UINT64_MAX - 1,
                                 UINT64_MAX };
    struct timed_sample list[40] = { 0 };

    for (u32 a = 0; a < ARRAY_SIZE(times); a++) {
        for (u32 b = 0; b < ARRAY_SIZE(times); b++) {
            for (u32 p = 0; p < ARRAY_SIZE(times); p++) {
                for (u32 i = 0; i < ARRAY_SIZE(list); i++)
                    list[i].time = i % 2 ? times[a] : times[b];
                for (u32 count = 1; count <= ARRAY_SIZE(list); count += 3) {
                    struct timeline t = timeline_make(list, count, 1, times[p]);
                    assert_in_range(t.bins, 1, 1000);
                    for (u32 i = 0; i < count; i++)
                        assert_true(timeline_bin(&t, list[i].time) < t.bins);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),
        cmocka_unit_test(program_by_time),
        cmocka_unit_test(strange_names),
        cmocka_unit_test(no_samples),
        cmocka_unit_test(bins),
        cmocka_unit_test(bins_of_ticks),
        cmocka_unit_test(bins_of_any_time),
        cmocka_unit_test(several_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
