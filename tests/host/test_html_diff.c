// The data of the comparison page: the merged trees of both sides, from
// synthetic recordings.
// link: user/libprofile/check.c user/libprofile/binomial.c
// link: user/libstrobe/core_clock.c
// link: tools/strobe-src/traced.c user/libprofile/call_paths.c
// link: user/libprofile/call_tables.c user/libprofile/calls_file.c
// link: user/libprofile/diff.c user/libprofile/welch.c
// link: tools/strobe-src/html_diff.c tools/strobe-src/diff_tree.c
// link: tools/strobe-src/oracle.c
// link: tools/strobe-src/oracle_flat.c
// link: tools/strobe-src/oracle_parse.c
// link: tools/strobe-src/oracle_programs.c
// link: tools/strobe-src/profile.c
// link: user/libprofile/mapping.c user/libprofile/images_read.c
// link: user/libprofile/perf_walk.c user/libprofile/samples.c
// link: user/libprofile/stream.c user/libprofile/chains.c
// link: user/libprofile/images.c user/libprofile/programs.c
// link: user/libprofile/views.c user/libprofile/tree.c
// link: user/libprofile/header.c
// link: user/libprofile/samples_cut.c user/libstrobe/table.c
// link: user/libstrobe/messages.c user/libprofile/user_chain.c
// link: user/libprofile/sources.c user/libstrobe/kbox.c
// link: user/libstrobe/sysinfo.c user/libprofile/choose_event.c
// link: user/libprofile/perf_programs.c user/libprofile/shares.c
// link: tools/strobe-src/elves.c user/libprofile/perf_read.c
// link: tools/strobe-src/inlines.c tools/strobe-src/lines.c
// link: tools/strobe-src/names.c
// link: tools/strobe-src/places.c tools/strobe-src/coprocess.c
// link: user/libprofile/task_times.c
#define _GNU_SOURCE
#include "tools/strobe-src/html_diff.h" // before cmocka, which has a fail(), too
#include "tools/strobe-src/strobe.h"

#include <math.h>
#include <unistd.h>

#include "perf_made.h"

#define MS 1000000u

enum { CALLER = 0x8049010, CALLEE = 0x8049100 };

static struct made made;

static void begin_run(void)
{
    made_begin(&made);
    made_comm(&made, 7, "lua", true, 0);
    made_mmap(&made, 7, "/bin/lua", 0x8048000, 0x11, 0);
    made_comm(&made, 9, "sh", true, 0);
    made_mmap(&made, 9, "/bin/sh", 0x8048000, 0x22, 0);
}

// Adds a sample of `depth` frames that represents `ms` milliseconds.
static void add_sample(u32 task, u32 depth, u64 ms)
{
    static const u64 chain[] = { PERF_CONTEXT_USER, CALLEE, CALLER };
    static u64 time;
    const struct made_sample s = { .task = task,
                                   .thread = task,
                                   .time = ++time,
                                   .period = ms * MS,
                                   .chain = chain,
                                   .depth = depth + 1 };

    made_sample(&made, &s);
}

// Completes the file and adds it as the next run of the comparison.
static void add_run(struct diff *d, struct diff_trees *t)
{
    static struct profile profile;
    const struct common common = { 0 };
    char path[] = "/tmp/test_html_diff.XXXXXX";
    int fd = mkstemp(path);

    made_end(&made);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, made.bytes, made.size), made.size);
    close(fd);
    profile_open(&profile, path, &common);
    unlink(path);
    assert_null(diff_add(d, profile.files, &profile.samples));
    diff_trees_add(t, &profile.samples, diff_unit(profile.files));
    profile_close(&profile);
}

static char *data(struct diff *d, struct diff_trees *t)
{
    char *json;
    size_t size;
    FILE *out = open_memstream(&json, &size);

    diff_trees_sum(t);
    html_diff(out, d, t);
    fclose(out);
    diff_trees_free(t);
    diff_free(d);
    return json;
}

static void contains(const char *json, const char *part)
{
    if (strstr(json, part) == NULL)
        fail_msg("no %s in %s", part, json);
}

// Before: two functions of lua. After: one of them, and another program.
static void both_sides(void **state UNUSED)
{
    char *files[] = { "old", "new" };
    struct diff_trees t;
    struct diff d;

    assert_null(diff_init(&d, false, 2, files));
    diff_trees_init(&t, d.runs);
    begin_run();
    add_sample(7, 2, 3);
    add_sample(7, 1, 1);
    add_run(&d, &t);
    begin_run();
    add_sample(7, 2, 2);
    add_sample(9, 1, 5);
    add_run(&d, &t);
    char *json = data(&d, &t);
    contains(json, "{\"unit\":\"ms\",\"sides\":[{\"command\":\"\",\"runs\":"
                   "[\"old: ");
    contains(json, "]},{\"command\":\"\",\"runs\":[\"new: ");
    contains(json, "\"left_out\":0.0001");
    // Functions without symbols have the same name, but different files.
    contains(json, "\"symbols\":{\"name\":[\"(no symbol)\",\"lua\",");
    contains(json, "\"path\":[\"/bin/lua\",\"\",");
    // The root, lua and its two functions; then sh and its function.
    contains(json, ",\"calls\":{\"parent\":[0,0,1,2,0,4],\"symbol\":[0,1,0,0,");
    contains(json, "\"before\":[4,4,4,3,0,0],\"after\":[7,2,2,2,5,5],"
                   "\"chance\":[null,null,null,null,null,null]}");
    // The inverted tree: the innermost functions first, then their callers.
    contains(json, ",\"inverted\":{\"parent\":[0,0,1,2,1,0,5],");
    contains(json, "\"before\":[4,4,3,3,1,0,0],\"after\":[7,2,2,2,0,5,5],");
    contains(json, ",\"table\":{\n  \"before_runs\": 1, \"after_runs\": 1,");
    free(json);
}

// Several runs a side: the means, and the p-value of Welch's test, where t is
// -5 / sqrt(2) with 2 degrees of freedom.
static void several_runs(void **state UNUSED)
{
    static const u64 ms[] = { 10, 12, 5, 7 };
    char *files[] = { "a", "b", "vs", "c", "d" };
    struct diff_trees t;
    struct diff d;

    assert_null(diff_init(&d, false, 5, files));
    diff_trees_init(&t, d.runs);
    for (u32 i = 0; i < ARRAY_SIZE(ms); i++) {
        begin_run();
        add_sample(7, 1, ms[i]);
        add_run(&d, &t);
    }
    char *json = data(&d, &t);
    double p = student_two_sided(-5 / sqrt(2), 2);
    char part[128];
    snprintf(part, sizeof(part),
             "\"before\":[11,11,11],\"after\":[6,6,6],\"chance\":[%.9g,", p);
    contains(json, part);
    free(json);
}

static void no_samples(void **state UNUSED)
{
    char *files[] = { "a", "b" };
    struct diff_trees t;
    struct diff d;

    assert_null(diff_init(&d, false, 2, files));
    diff_trees_init(&t, d.runs);
    for (u32 i = 0; i < 2; i++) {
        begin_run();
        add_run(&d, &t);
    }
    char *json = data(&d, &t);
    contains(json, "\"calls\":{\"parent\":[0],\"symbol\":[0],\"before\":[0],"
                   "\"after\":[0],\"chance\":[null]}");
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides),
        cmocka_unit_test(several_runs),
        cmocka_unit_test(no_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
