// Files of `trace record`: what is read back, of files that are whole, cut off
// at each byte, or damaged in each; threads' lives; names of points.
//
// link: user/libtrace/reader.c user/libtrace/file.c user/libtrace/points.c
// link: user/libprofile/functions.c user/libstrobe/core_clock.c
// link: user/libtrace/lives.c user/libtrace/report.c user/libtrace/summary.c
// link: user/libtrace/spans.c
// link: user/libtrace/event_text.c user/libtrace/call_names.c
// link: user/libtrace/sensed.c user/libstrobe/sensor_recording.c
// link: user/libstrobe/sensor_print.c user/libstrobe/messages.c
// link: user/libstrobe/table.c
#include "test.h"
#include "tests/host/trace_made.h"

#include "user/libtrace/lives.h"
#include "user/libtrace/points.h"
#include "user/libtrace/report.h"

#include <stdlib.h>
#include <unistd.h>

// --- reading ----------------------------------------------------------------

static struct {
    struct lives lives;
    uint64_t last;
    uint32_t events;
} got;

static void on_event(void *arg UNUSED, const struct trace_event *e)
{
    assert_true(e->time >= got.last);
    got.last = e->time;
    got.events++;
    lives_event(&got.lives, e);
}

// Opens and reads the file that was written. NULL, or the message.
static const char *read_file(struct trace_file *f)
{
    lives_free(&got.lives);
    memset(&got, 0, sizeof(got));
    const char *problem = trace_file_open(f, path);
    if (problem)
        return problem;
    problem = trace_file_events(f, on_event, NULL);
    trace_file_close(f);
    return problem;
}

static void lives_tile(void)
{
    for (uint32_t i = 0; i < got.lives.count; i++) {
        const struct life *t = &got.lives.all[i];
        assert_true(t->running + t->interrupted + t->ready + t->blocked +
                        t->gaps ==
                    t->until - t->began);
    }
}

static void reads_what_was_written(void **state UNUSED)
{
    static struct trace_file f;
    const struct life *t;

    make();
    write_file(made.bytes, made.used);
    assert_null(read_file(&f));
    assert_int_equal(got.events, EVENTS);
    assert_true(f.has_end);
    assert_string_equal(f.command, "dd if=x");
    assert_int_equal(got.lives.contradictions, 0);
    t = lives_find(&got.lives, 7);
    assert_int_equal(t->state, LIFE_ENDED);
    // By `at`: ready 0x0d-0x2b, runs -0x8b, of that an interrupt 0x4e-0x6e,
    // waits -0xad, ready -0xcb, runs -0xfb.
    assert_int_equal(t->ready, 0x2b - 0x0d + 0xcb - 0xad);
    assert_int_equal(t->interrupted, 0x20);
    assert_int_equal(t->running, 0x8b - 0x2b - 0x20 + 0xfb - 0xcb);
    assert_int_equal(t->blocked, 0xad - 0x8b);
    assert_int_equal(t->switches, 2);
    lives_tile();
    lives_free(&got.lives);
}

// The TIME record before it is of the thread that comes.
// A flight of which one CPU's events before its second switch are missing, or
// could be.
static void what_is_partial_is_not_summed_up(void **state UNUSED)
{
    static struct trace_file f;
    uint64_t since = START + 0x80;
    struct trace_file_flight flight = {
        .ms = 1000, .since = { (uint32_t)since, (uint32_t)(since >> 32) }
    };
    const struct life *t;

    make_flight(&flight);
    write_file(made.bytes, made.used);
    assert_null(read_file(&f));
    assert_int_equal(got.events, EVENTS);
    assert_int_equal(f.flight.ms, 1000);
    assert_int_equal(got.lives.contradictions, 0);
    t = lives_find(&got.lives, 7);
    assert_int_equal(t->state, LIFE_ENDED);
    assert_int_equal(t->began, START + 0x8b); // it was running, for how long?
    assert_int_equal(t->running, 0xfb - 0xcb);
    assert_int_equal(t->blocked, 0xad - 0x8b);
    lives_tile();
    lives_free(&got.lives);
}

static void a_switch_may_be_the_first_event(void **state UNUSED)
{
    struct trace_reader r = { .event = on_event };
    const struct life *t;

    lives_free(&got.lives);
    memset(&got, 0, sizeof(got));
    memset(&made, 0, sizeof(made));
    begin_blocks();
    begin_block(0, START + 0x800);
    add_time(START, 8);
    add_switch(START + 0x10, 7, 8, 3);
    add_wake(START + 0x20, 7);
    assert_null(trace_reader_take(&r, made.bytes + 8, made.used - 8));
    trace_reader_free(&r);
    assert_int_equal(got.events, 2);
    assert_int_equal(got.lives.contradictions, 0);
    t = lives_find(&got.lives, 7);
    assert_int_equal(t->blocked, 0x20 - 3 - (0x10 - 5));
    assert_int_equal(lives_find(&got.lives, 8)->switches, 1);
    lives_free(&got.lives);
}

static char first_name[32];

static void on_named_event(void *arg, const struct trace_event *e)
{
    if (e->type == TRACE_syscall_enter)
        trace_file_thread(arg, 7, first_name);
}

static void add_exec(uint32_t task, const char *name)
{
    struct sprofile_task t = { .head = { .type = SPROFILE_R_TASK,
                                         .size = sizeof(t) },
                               .kind = SPROFILE_T_EXECED,
                               .task = task };
    strcpy(t.name, name);
    add_record(&t, sizeof(t));
}

// A second reading does not begin with the names that the first one ended with.
static void names_are_those_of_their_time(void **state UNUSED)
{
    static struct trace_file f;

    make();
    made.used -= sizeof(struct trace_file_chunk) + sizeof(f.end);
    begin_blocks();
    begin_block(TRACE_BLOCK_TASKS, 0);
    add_exec(7, "later");
    write_file(made.bytes, made.used);
    assert_null(trace_file_open(&f, path));
    for (uint32_t i = 0; i < 2; i++) {
        strcpy(first_name, "");
        assert_null(trace_file_events(&f, on_named_event, &f));
        assert_string_equal(first_name, "dd:7");
    }
    trace_file_thread(&f, 7, first_name);
    assert_string_equal(first_name, "later:7");
    trace_file_close(&f);
}

static void
a_file_that_is_cut_off_is_read_to_its_last_record(void **state UNUSED)
{
    static struct trace_file f;
    uint32_t before = 0, whole = 0;

    make();
    for (uint32_t n = 0; n <= made.used; n++) {
        write_file(made.bytes, n);
        const char *problem = read_file(&f);
        lives_tile();
        if (problem)
            assert_int_equal(got.events, 0);
        else
            whole++;
        assert_true(got.events >= before); // each byte more is no loss
        before = got.events;
        assert_true(f.has_end == (n == made.used) || problem);
    }
    assert_int_equal(before, EVENTS);
    assert_true(whole > 300);
    lives_free(&got.lives);
}

static void damage_does_no_harm(void **state UNUSED)
{
    static struct trace_file f;
    static const struct trace_choice all;
    FILE *out = fopen("/dev/null", "w");

    make();
    for (uint32_t n = 0; n < made.used; n++) {
        made.bytes[n] ^= 0xff;
        write_file(made.bytes, made.used);
        lives_free(&got.lives);
        memset(&got, 0, sizeof(got));
        if (!trace_file_open(&f, path)) {
            trace_report(out, &f, &all);
            trace_summary(out, &f);
            trace_file_close(&f);
        }
        made.bytes[n] ^= 0xff;
    }
    fclose(out);
}

static char *text_of(bool summary, const struct trace_choice *choice)
{
    static struct trace_file f;
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    make();
    write_file(made.bytes, made.used);
    assert_null(trace_file_open(&f, path));
    assert_null(summary ? trace_summary(out, &f)
                        : trace_report(out, &f, choice));
    trace_file_close(&f);
    fclose(out);
    return text;
}

static void prints_names(void **state UNUSED)
{
    struct trace_choice choice = { .by_thread = true, .thread = 7 };
    char *text = text_of(false, &choice);

    has(text, "# command: dd if=x\n");
    has(text, "# 12 events in ");
    has(text, "sched/switch   [idle] -> dd:7\n");
    has(text, "sched/switch   dd:7 waits -> [idle]\n");
    has(text, "syscall/exit   read = -5\n");
    has(text, "irq/enter      48\n");
    assert_null(strstr(text, "MISSING"));
    free(text);
    text = text_of(true, NULL);
    has(text, "Calls that ended with their thread: 1; that go on: 0; without "
              "an end: 0\n");
    has(text, "1 failed");
    free(text);
}

static void names_what_is_near(void **state UNUSED)
{
    static const struct {
        const char *pattern, *near;
    } cases[] = { { "sched/swich", "Near are: sched/switch" },
                  { "wake", "Near are: sched/wake" },
                  { "syscalls/enter", "Near are: syscall/enter" } };

    assert_int_equal(trace_points_named("sched/wake"), 1u << TRACE_sched_wake);
    assert_int_equal(trace_points_named("irq"), trace_points_named("irq/*"));
    assert_int_equal(trace_points_named("*"),
                     TRACE_ALL_POINTS & ~(1u << TRACE_sched_pmc));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        assert_int_equal(trace_points_named(cases[i].pattern), 0);
        trace_points_print_near(cases[i].pattern, out);
        fclose(out);
        has(text, cases[i].near);
        free(text);
    }
}

static void calls_of_functions_have_names(void **state UNUSED)
{
    static struct trace_file f;
    static const struct trace_choice all;
    char *text;
    size_t size;

    for (int named = 0; named < 2; named++) {
        make_head(1);
        if (named)
            add_functions();
        begin_blocks();
        begin_block(0, START + 0x800);
        add_time(START, 7);
        add_call(START + 0x10);
        add_call(START + 0x20);
        write_file(made.bytes, made.used);
        assert_null(trace_file_open(&f, path));
        FILE *out = open_memstream(&text, &size);
        assert_null(trace_report(out, &f, &all));
        assert_null(trace_summary(out, &f));
        fclose(out);
        trace_file_close(&f);
        has(text, named ? "function/call  copy by vfs_read\n"
                        : "function/call  0xc0102000 by 0xc0101020\n");
        has(text, named ? "\ncopy                                         2\n"
                        : "\n0xc0102000                                   2\n");
        free(text);
    }
}

static void counters_have_names(void **state UNUSED)
{
    static const struct trace_choice all;
    struct trace_file f;
    char *text;
    size_t size;

    for (int named = 0; named < 2; named++) {
        make_counts(named);
        write_file(made.bytes, made.used);
        assert_null(trace_file_open(&f, path));
        FILE *out = open_memstream(&text, &size);
        assert_null(trace_report(out, &f, &all));
        assert_null(trace_summary(out, &f));
        fclose(out);
        trace_file_close(&f);
        has(text, named ? "sched/pmc      dd:7 cycles=1000 instructions=2000\n"
                        : "sched/pmc      dd:7 first=1000 second=2000\n");
        has(text, named ? "Runs           cycles     instructions       IPC\n"
                        : "Runs            first           second     Ratio\n");
        // Three events in less time than they cost: that is no share.
        has(text, "measured at the start: about 210 in all\n");
        has(text, "\ndd:7                             2       4294968296"
                  "             2007      0.00\n");
        has(text, "\n[idle]                           1              500"
                  "              100      0.20\n");
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_functions_have_names),
        cmocka_unit_test(counters_have_names),
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(what_is_partial_is_not_summed_up),
        cmocka_unit_test(a_switch_may_be_the_first_event),
        cmocka_unit_test(names_are_those_of_their_time),
        cmocka_unit_test(a_file_that_is_cut_off_is_read_to_its_last_record),
        cmocka_unit_test(damage_does_no_harm),
        cmocka_unit_test(prints_names),
        cmocka_unit_test(names_what_is_near),
    };

    return cmocka_run_group_tests(tests, begin_file, remove_file);
}
