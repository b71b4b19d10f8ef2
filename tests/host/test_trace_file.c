// Files of `trace record`: what is read back, of files that are whole, cut off
// at each byte, or damaged in each; threads' lives; names of points.
//
// link: user/libtrace/reader.c user/libtrace/file.c user/libtrace/points.c
// link: user/libtrace/lives.c user/libtrace/report.c user/libtrace/summary.c
// link: user/libtrace/event_text.c user/libtrace/call_names.c
#include "test.h"

#include "user/libtrace/lives.h"
#include "user/libtrace/points.h"
#include "user/libtrace/report.h"

#include <stdlib.h>
#include <unistd.h>

#define ROOM 65536u

// --- a file is made ---------------------------------------------------------

static struct {
    uint8_t bytes[ROOM];
    uint32_t used, chunk, block;
} made;

static void add(const void *bytes, uint32_t size)
{
    assert_true(made.used + size <= ROOM);
    memcpy(made.bytes + made.used, bytes, size);
    made.used += size;
}

static void grow_word(uint32_t at, uint32_t by)
{
    uint32_t word;

    memcpy(&word, made.bytes + at, sizeof(word));
    word += by;
    memcpy(made.bytes + at, &word, sizeof(word));
}

static void add_chunk(uint32_t kind, const void *body, uint32_t bytes)
{
    struct trace_file_chunk c = { .kind = kind, .bytes = bytes };

    add(&c, sizeof(c));
    add(body, bytes);
}

static void begin_blocks(void)
{
    made.chunk = made.used + 4;
    add_chunk(TRACE_FILE_BLOCKS, "", 0);
}

static void begin_block(uint32_t cpu, uint64_t until)
{
    struct trace_block b = { .cpu = cpu, .until = until };

    made.block = made.used + 4;
    add(&b, sizeof(b));
    grow_word(made.chunk, sizeof(b));
}

static void add_record(const void *record, uint32_t bytes)
{
    add(record, bytes);
    grow_word(made.chunk, bytes);
    grow_word(made.block, bytes);
}

static void add_time(uint64_t time, uint32_t thread)
{
    struct trace_time t = { .head = TRACE_HEAD(time, TRACE_R_TIME, 4),
                            .thread = thread,
                            .time = { (uint32_t)time,
                                      (uint32_t)(time >> 32) } };
    add_record(&t, sizeof(t));
}

static void add_event(uint64_t time, uint32_t type, const void *fields,
                      uint32_t bytes)
{
    uint32_t words = 1 + (bytes + 3) / 4, record[TRACE_WORDS_MAX] = { 0 };

    record[0] = TRACE_HEAD(time, type, words);
    memcpy(record + 1, fields, bytes);
    add_record(record, words * 4);
}

static void add_switch(uint64_t time, uint32_t prev, uint32_t next,
                       uint8_t state)
{
    struct trace_sched_switch s = { prev, next, state, (uint32_t)time - 5 };
    add_event(time, TRACE_sched_switch, &s, sizeof(s));
}

static void add_wake(uint64_t time, uint32_t thread)
{
    struct trace_sched_wake w = { thread, 0, (uint32_t)time - 3 };
    add_event(time, TRACE_sched_wake, &w, sizeof(w));
}

static void add_words(uint64_t time, uint32_t type, uint32_t a, uint32_t b,
                      uint32_t words)
{
    uint32_t fields[] = { a, b };
    add_event(time, type, fields, words * 4);
}

static void add_points(void)
{
    char text[4096] = "";

    for (uint32_t i = 0; i < TRACE_POINTS; i++)
        strcat(text, trace_point_fields(i));
    add_chunk(TRACE_FILE_POINTS, text, (uint32_t)strlen(text));
}

#define START 0x100001000ull // its low word is small: `at` may lie before it

static void make(void)
{
    struct trace_file_head h = {
        .magic = TRACE_FILE_MAGIC,
        .version = TRACE_FILE_VERSION,
        .bytes = sizeof(h),
        .trace_version = TRACE_VERSION,
        .cpus = 1,
        .points = (1u << TRACE_POINTS) - 1,
        .tsc_hz = { 1000000000 },
        .event_cycles = 70,
    };
    struct trace_file_thread t = { 7, 7, "dd" };
    struct trace_file_end e = { TRACE_FILE_ENDED, 0, { 12 }, { 0 } };

    memset(&made, 0, sizeof(made));
    add(&h, sizeof(h));
    add_points();
    add_chunk(TRACE_FILE_COMMAND, "dd if=x", 7);
    add_chunk(TRACE_FILE_THREAD, &t, sizeof(t));
    add_chunk(99, "unknown", 7);
    begin_blocks();
    begin_block(0, START + 0x800);
    add_time(START, 0);
    add_wake(START + 0x10, 7);
    add_switch(START + 0x30, 0, 7, 0);
    add_words(START + 0x40, TRACE_syscall_enter, 3, 0, 1);
    add_words(START + 0x50, TRACE_irq_enter, 48, (uint32_t)START + 0x4e, 2);
    add_words(START + 0x60, TRACE_irq_exit, 48, 0, 1);
    add_words(START + 0x70, TRACE_irq_return, (uint32_t)START + 0x6e, 0, 1);
    add_switch(START + 0x90, 7, 0, 3);
    add_wake(START + 0xb0, 7);
    begin_blocks();
    begin_block(0, START + 0x900);
    add_switch(START + 0xd0, 0, 7, 0);
    add_words(START + 0xe0, TRACE_syscall_exit, 3, (uint32_t)-5, 2);
    add_words(START + 0xf0, TRACE_syscall_enter, 1, 0, 1);
    add_switch(START + 0x100, 7, 0, 5);
    add_chunk(TRACE_FILE_END, &e, sizeof(e));
}

#define EVENTS 12u

// --- reading ----------------------------------------------------------------

static char path[] = "/tmp/test_trace_file.XXXXXX";

static void write_file(const void *bytes, uint32_t size)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

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

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in:\n%s", part, text);
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
    assert_int_equal(trace_points_named("*"), (1u << TRACE_POINTS) - 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(a_switch_may_be_the_first_event),
        cmocka_unit_test(names_are_those_of_their_time),
        cmocka_unit_test(a_file_that_is_cut_off_is_read_to_its_last_record),
        cmocka_unit_test(damage_does_no_harm),
        cmocka_unit_test(prints_names),
        cmocka_unit_test(names_what_is_near),
    };
    int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
