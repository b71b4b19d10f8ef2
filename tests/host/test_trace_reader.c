// The reader of traces and the text of the kernel's calls: known traces, and
// traces that are cut off or damaged anywhere.
//
// link: user/libtrace/reader.c user/libtrace/graph.c user/libtrace/call_names.c
// link: user/libtrace/graph_lines.c user/libstrobe/table.c
#include "test.h"

#include "user/libtrace/graph.h"

#include <stdlib.h>

#define ROOM 4096u

// --- a trace is made --------------------------------------------------------

static struct {
    uint32_t words[ROOM];
    uint32_t used, block; // words; index of the block that is being made
} made;

static void begin_block(uint32_t cpu, uint64_t until)
{
    struct trace_block b = { .cpu = cpu, .until = until };

    made.block = made.used;
    memcpy(&made.words[made.used], &b, sizeof(b));
    made.used += sizeof(b) / 4;
}

static void add(const void *record, uint32_t bytes)
{
    assert_true(made.used + bytes / 4 <= ROOM);
    memcpy(&made.words[made.used], record, bytes);
    made.used += bytes / 4;
    made.words[made.block + 1] += bytes;
}

static void add_time(uint64_t time, uint32_t thread)
{
    struct trace_time t = { .head = TRACE_HEAD(time, TRACE_R_TIME, 4),
                            .thread = thread,
                            .time = { (uint32_t)time,
                                      (uint32_t)(time >> 32) } };
    add(&t, sizeof(t));
}

static void add_lost(uint64_t time, uint32_t thread, uint32_t count)
{
    struct trace_lost l = { .time = { .head = TRACE_HEAD(time, TRACE_R_LOST, 5),
                                      .thread = thread,
                                      .time = { (uint32_t)time,
                                                (uint32_t)(time >> 32) } },
                            .count = count };
    add(&l, sizeof(l));
}

static void add_event(uint64_t time, uint32_t type, const void *fields,
                      uint32_t bytes)
{
    uint32_t words = 1 + (bytes + 3) / 4, record[TRACE_WORDS_MAX] = { 0 };

    record[0] = TRACE_HEAD(time, type, words);
    memcpy(record + 1, fields, bytes);
    add(record, words * 4);
}

static void add_entry(uint64_t time, uint32_t function, uint32_t mark)
{
    uint32_t fields[] = { function, mark };
    add_event(time, TRACE_R_ENTRY, fields, sizeof(fields));
}

static void add_exit(uint64_t time, uint32_t function, uint32_t cycles)
{
    uint32_t fields[] = { function, cycles, 0 };
    add_event(time, TRACE_R_EXIT, fields, sizeof(fields));
}

static void add_switch(uint64_t time, uint32_t prev, uint32_t next,
                       uint8_t state)
{
    struct trace_sched_switch s = { prev, next, state, 0 };
    add_event(time, TRACE_sched_switch, &s, sizeof(s));
}

static void add_one(uint64_t time, uint32_t type, uint32_t a, uint32_t b,
                    uint32_t words)
{
    uint32_t fields[] = { a, b };
    add_event(time, type, fields, words * 4);
}

static void add_task(uint32_t id, const char *name)
{
    union {
        struct sprofile_task t;
        uint32_t words[16];
    } r = { .t = { .head = { .type = SPROFILE_R_TASK, .size = 64 },
                   .task = id,
                   .kind = SPROFILE_T_EXECED } };
    strcpy(r.t.name, name);
    add(&r, 64);
}

#define A 0xc0101000u
#define B 0xc0102000u
#define C 0xc0103000u

// Two CPUs; a system call that calls, waits, and is interrupted.
static void make(void)
{
    memset(&made, 0, sizeof(made));
    begin_block(TRACE_BLOCK_TASKS, 0);
    add_task(7, "dd");
    begin_block(0, 0x7000000);
    add_time(0x1000000, 7);
    add_one(0x1000010, TRACE_syscall_enter, 4, 0, 1);
    add_entry(0x1000020, A, 900);
    add_entry(0x1000030, B, 800);
    add_exit(0x1000040, B, 16);
    add_one(0x1000050, TRACE_irq_enter, 48, 0, 1);
    add_entry(0x1000060, C, 700);
    add_exit(0x1000070, C, 10);
    add_one(0x1000080, TRACE_irq_exit, 48, 0, 1);
    add_switch(0x1000090, 7, 0, 3);
    add_event(0, TRACE_R_PAD, "", 0);
    add_time(0x2000000, 0);
    add_switch(0x2000090, 0, 7, 0);
    add_exit(0x20000a0, A, 64);
    add_one(0x20000b0, TRACE_syscall_exit, 4, (uint32_t)-4, 2);
    begin_block(1, 0x7000000);
    add_time(0x1000000, 9);
    add_entry(0x1000035, B, 800); // never returns
    add_lost(0x3000000, 9, 12);
    add_exit(0x3000010, A, 5);
}

// --- the reader -------------------------------------------------------------

static struct {
    uint64_t last;
    uint32_t events, tasks;
} got;

static void on_event(void *arg UNUSED, const struct trace_event *e)
{
    assert_true(e->time >= got.last);
    assert_true(e->cpu < TRACE_CPUS_MAX);
    got.last = e->time;
    got.events++;
}

static void on_task(void *arg UNUSED, const struct sprofile_task *t)
{
    assert_true(strlen(t->name) < sizeof(t->name));
    got.tasks++;
}

static void delivers_in_the_order_of_time(void **state UNUSED)
{
    struct trace_reader r = { .event = on_event, .task = on_task };

    make();
    memset(&got, 0, sizeof(got));
    assert_null(trace_reader_take(&r, made.words, made.used * 4));
    assert_int_equal(got.events, 15); // with the LOST one
    assert_int_equal(got.tasks, 1);
    assert_int_equal(r.events, 14);
    assert_int_equal(r.lost, 12);
    trace_reader_free(&r);
}

static void holds_what_other_cpus_may_precede(void **state UNUSED)
{
    struct trace_reader r = { .event = on_event };

    memset(&made, 0, sizeof(made));
    memset(&got, 0, sizeof(got));
    begin_block(0, 0x1000100);
    add_time(0x1000000, 7);
    add_entry(0x1000010, A, 900);
    add_entry(0x1000090, A, 800);
    add_entry(0x1000091, A, 700);
    begin_block(1, 0x1000050);
    assert_null(trace_reader_take(&r, made.words, made.used * 4));
    assert_int_equal(got.events, 1);
    memset(&made, 0, sizeof(made));
    begin_block(0, 0x1000200);
    begin_block(1, 0x1000200);
    add_time(0x1000060, 9);
    add_entry(0x1000060, B, 900);
    assert_null(trace_reader_take(&r, made.words, made.used * 4));
    assert_int_equal(got.events, 4);
    assert_true(got.last == 0x1000091);
    trace_reader_free(&r);
}

// A block that was cut off, as there was no more room, is complete up to its
// last record.
static void delivers_up_to_where_a_block_was_cut(void **state UNUSED)
{
    struct trace_reader r = { .event = on_event };

    memset(&made, 0, sizeof(made));
    memset(&got, 0, sizeof(got));
    begin_block(0, 0);
    add_time(0x1000000, 7);
    add_entry(0x1000010, A, 900);
    add_entry(0x1000020, A, 800);
    add_entry(0x1000030, A, 700);
    begin_block(1, 0x1000025);
    add_time(0x1000000, 9);
    add_entry(0x1000015, B, 900);
    assert_null(trace_reader_take(&r, made.words, made.used * 4));
    assert_int_equal(got.events, 3);
    assert_true(got.last == 0x1000020);
    memset(&made, 0, sizeof(made));
    begin_block(0, 0x1000100);
    add_entry(0x1000030, A, 600);
    begin_block(1, 0x1000100);
    assert_null(trace_reader_take(&r, made.words, made.used * 4));
    assert_int_equal(got.events, 5);
    trace_reader_free(&r);
}

// Three CPUs; what is at the same time is in the order of the CPUs.
static struct trace_event seen[16];

static void keep_event(void *arg UNUSED, const struct trace_event *e)
{
    assert_true(got.events < ARRAY_SIZE(seen));
    seen[got.events++] = *e;
}

static void add_two(uint32_t cpu, uint64_t first, uint64_t second)
{
    begin_block(cpu, 0x1000100);
    add_time(0x1000000, cpu + 1);
    uint32_t fields[] = { A, cpu, 77 };
    add_event(first, TRACE_R_EXIT, fields, sizeof(fields));
    add_entry(second, B, 900);
}

static void merges_cpus(void **state UNUSED)
{
    static const uint32_t cpus[] = { 2, 0, 1, 2, 1, 0 };
    struct trace_reader r = { .event = keep_event };

    memset(&made, 0, sizeof(made));
    memset(&got, 0, sizeof(got));
    add_two(2, 0x1000010, 0x1000020);
    add_two(0, 0x1000020, 0x1000040);
    add_two(1, 0x1000020, 0x1000030);
    assert_null(trace_reader_take(&r, made.words, made.used * 4));
    assert_int_equal(got.events, 6);
    for (uint32_t i = 0; i < 6; i++) {
        const struct trace_event *e = &seen[i];
        assert_int_equal(e->cpu, cpus[i]);
        assert_int_equal(e->thread, cpus[i] + 1);
        assert_true(!i || e->time >= seen[i - 1].time);
    }
    trace_reader_free(&r);
}

// The fields that a record is too short for are 0, not the next record; also
// of one that is the last in its memory, and of the second time that it is
// decoded: the other CPU's records have not come at the first.
static void on_short(void *arg UNUSED, const struct trace_event *e)
{
    static const uint8_t nothing[12];

    assert_true(e->size == 4 || e->size == 8);
    assert_int_equal(e->fields[0], A & 0xff);
    assert_memory_equal(e->fields + e->size, nothing,
                        sizeof(nothing) - e->size);
    got.events++;
}

static void fills_up_short_records(void **state UNUSED)
{
    struct trace_reader r = { .event = on_short };
    uint32_t fields[] = { A, 0, 0 };

    memset(&made, 0, sizeof(made));
    memset(&got, 0, sizeof(got));
    begin_block(0, 0x1000100);
    add_time(0x1000000, 1);
    add_event(0x1000010, TRACE_R_EXIT, fields, 8);
    add_event(0x1000020, TRACE_R_EXIT, fields, 4);
    add_event(0x1000030, TRACE_sched_switch, fields, 4);
    begin_block(1, 0x1000015);
    add_time(0x1000000, 2);
    assert_null(trace_reader_take(&r, made.words, made.used * 4));
    assert_int_equal(got.events, 1);
    trace_reader_finish(&r);
    assert_int_equal(got.events, 3);
    trace_reader_free(&r);
}

static uint32_t entered[4], entered_count;

static void on_function(void *arg UNUSED, uint32_t function)
{
    assert_int_equal(got.events, 0);
    entered[entered_count++ % 4] = function;
}

static void tells_of_functions_before_events(void **state UNUSED)
{
    struct trace_reader r = { .event = on_event, .entry = on_function };

    memset(&made, 0, sizeof(made));
    memset(&got, 0, sizeof(got));
    begin_block(0, 0x1000100);
    add_time(0x1000000, 7);
    add_entry(0x1000010, A, 900);
    add_exit(0x1000020, C, 1);
    add_entry(0x1000030, B, 800);
    assert_null(trace_reader_take(&r, made.words, made.used * 4));
    assert_int_equal(got.events, 3);
    assert_int_equal(entered_count, 2);
    assert_true(entered[0] == A && entered[1] == B);
    trace_reader_free(&r);
}

static void refuses_time_that_runs_backwards(void **state UNUSED)
{
    struct trace_reader r = { .event = on_event };

    memset(&made, 0, sizeof(made));
    memset(&got, 0, sizeof(got));
    begin_block(0, 0x1000100);
    add_time(0x1000000, 7);
    add_entry(0x1000010, A, 900);
    add_entry(0x1000010, B, 800);
    add_entry(0x100000f, C, 700);
    assert_non_null(trace_reader_take(&r, made.words, made.used * 4));
    assert_int_equal(got.events, 0);
    trace_reader_finish(&r);
    assert_int_equal(got.events, 2); // what was before
    trace_reader_free(&r);
}

// --- the text ---------------------------------------------------------------

static const struct calls_name *function(uint32_t address)
{
    static const struct calls_name names[] = { { A, 5, "alpha" },
                                               { B, 4, "beta" },
                                               { C, 5, "gamma" } };
    return &names[address == A ? 0 : address == B ? 1 : 2];
}

static const char *thread(uint32_t id)
{
    static char name[32];

    snprintf(name, sizeof(name), "thread-%u", (unsigned)id);
    return name;
}

static void draw(void *arg, const struct trace_event *e)
{
    graph_event(arg, e);
}

// The text, which the caller frees. NULL: the trace was refused.
static char *text_of(const void *bytes, size_t size, uint64_t min)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    struct graph g = { .out = out,
                       .cycle_ns = 1,
                       .min_cycles = min,
                       .function = function,
                       .thread = thread };
    struct trace_reader r = { .event = draw, .arg = &g };
    const char *problem = trace_reader_take(&r, bytes, size);

    trace_reader_finish(&r);
    graph_finish(&g);
    trace_reader_free(&r);
    fclose(out);
    if (!problem)
        return text;
    free(text);
    return NULL;
}

static void prints_nested_calls(void **state UNUSED)
{
    make();
    char *text = text_of(made.words, made.used * 4, 0);
    assert_string_equal(
        text,
        "  0  thread-7                    [system call write] {\n"
        "  0  thread-7                      alpha {\n"
        "  0  thread-7              16ns      beta();\n"
        "  0  thread-7                        [interrupt 48] {\n"
        "  0  thread-7              10ns        gamma();\n"
        "  0  thread-7              48ns      } [interrupt 48]\n"
        "  0  ---- thread-7 waits -> thread-0 ----\n"
        "  0  ---- thread-0 -> thread-7, which was away for 16.7ms ----\n"
        "  0  thread-7              64ns    } alpha\n"
        "  0  thread-7             160ns  } [system call write] = -4\n"
        "  1  thread-9                    beta {\n"
        "  1  ==== 12 events are LOST ====\n"
        "  1  thread-9               5ns  } alpha (its call is missing)\n");
    free(text);
}

static void prints_numbers(void **state UNUSED)
{
    memset(&made, 0, sizeof(made));
    begin_block(1, 0x1000000000000);
    add_time(0x1000000, 7);
    add_one(0x1000010, TRACE_page_fault, 0xbffffffc, 0, 2);
    add_one(0x1000010 + 9999, TRACE_page_fault_end, 0, 0, 1);
    add_one(0x1003000, TRACE_page_fault, 0, 0, 2);
    add_one(0x1003000 + 10000, TRACE_page_fault_end, -14u, 0, 1);
    add_one(0x1010000, TRACE_page_fault, 0x40, 0, 2);
    add_time(0x2000000000, 7);
    add_one(0x2000000000, TRACE_page_fault_end, 0x80000000, 0, 1);
    add_time(0x2000000001, 7);
    add_one(0x2000000001, TRACE_irq_enter, 48, 0, 1);
    add_time(0x2000000001 + 9999999, 7);
    add_one(0x2000000001 + 9999999, TRACE_irq_exit, 48, 0, 1);
    add_time(0x800000000000, 7);
    add_exit(0x800000000000, A, 0xffffffff);
    char *text = text_of(made.words, made.used * 4, 0);
    assert_string_equal(
        text,
        "  1  thread-7            9999ns  [page fault at 0xbffffffc] = 0\n"
        "  1  thread-7            10.0us  [page fault at 0] = -14\n"
        "  1  thread-7            137.4s  [page fault at 0x40] = "
        "-2147483648\n"
        "  1  thread-7          9999.9us  [interrupt 48]\n"
        "  1  thread-7          4294.9ms  } alpha (its call is missing)\n");
    free(text);
}

static const char *renamed = "first";

static const char *changing_name(uint32_t id UNUSED)
{
    return renamed;
}

static void shows_the_names_that_threads_have_now(void **state UNUSED)
{
    char *text;
    size_t length;
    struct graph g = { .out = open_memstream(&text, &length),
                       .cycle_ns = 1,
                       .function = function,
                       .thread = changing_name };
    struct trace_event e = {
        .time = 5, .cpu = 3, .thread = 7, .type = TRACE_task_exec
    };
    static const uint8_t nothing[8];
    e.fields = nothing;

    graph_event(&g, &e);
    renamed = "a name of as many as 31 letters";
    graph_forget_names(&g);
    graph_event(&g, &e);
    e.cpu = 255;
    graph_event(&g, &e);
    graph_finish(&g);
    fclose(g.out);
    assert_string_equal(
        text, "  3  first                       -- executes a new program --\n"
              "  3  a name of as many as 31 letters            "
              "-- executes a new program --\n"
              "255  a name of as many as 31 letters            "
              "-- executes a new program --\n");
    free(text);
}

// What the other threads of the CPU did is not known either.
static void a_loss_ends_the_calls_of_all_threads_of_its_cpu(void **state UNUSED)
{
    memset(&made, 0, sizeof(made));
    begin_block(1, 0x7000000);
    add_time(0x1000000, 8);
    add_entry(0x1000010, A, 900);
    add_switch(0x1000020, 8, 9, 3);
    add_lost(0x1000030, 9, 12);
    add_switch(0x1000040, 9, 8, 3);
    add_exit(0x1000050, A, 5);
    begin_block(2, 0x7000000);
    add_time(0x1000000, 6);
    add_entry(0x1000011, B, 900);
    add_exit(0x1000060, B, 6);
    char *text = text_of(made.words, made.used * 4, 0);
    assert_string_equal(
        text, "  1  thread-8                    alpha {\n"
              "  1  ---- thread-8 waits -> thread-9 ----\n"
              "  1  ==== 12 events are LOST ====\n"
              "  1  ---- thread-9 waits -> thread-8 ----\n"
              "  1  thread-8               5ns  } alpha (its call is missing)\n"
              "  2  thread-6               6ns  beta();\n");
    free(text);
}

static void leaves_short_calls_out(void **state UNUSED)
{
    make();
    char *text = text_of(made.words, made.used * 4, 64);
    assert_string_equal(
        text, "  0  thread-7                    [system call write] {\n"
              "  0  thread-7              64ns    alpha();\n"
              "  0  thread-7             160ns  } [system call write] = -4\n"
              "  1  ==== 12 events are LOST ====\n");
    free(text);
}

static void marks_calls_without_a_return(void **state UNUSED)
{
    memset(&made, 0, sizeof(made));
    begin_block(0, 0x7000000);
    add_time(0x1000000, 7);
    add_entry(0x1000010, A, 900);
    add_entry(0x1000020, B, 800);
    add_entry(0x1000030, C, 850); // beta was left
    add_entry(0x1000040, B, 850); // a tail call
    add_exit(0x1000050, B, 3);
    add_exit(0x1000051, C, 4);
    add_exit(0x1000060, A, 90);
    char *text = text_of(made.words, made.used * 4, 0);
    assert_string_equal(text,
                        "  0  thread-7                    alpha {\n"
                        "  0  thread-7                      beta {\n"
                        "  0  thread-7                      } (no return: "
                        "beta)\n"
                        "  0  thread-7                      gamma {\n"
                        "  0  thread-7               3ns      beta();\n"
                        "  0  thread-7               4ns    } gamma\n"
                        "  0  thread-7              90ns  } alpha\n");
    free(text);
}

// --- damage -----------------------------------------------------------------

static void survives_a_cut_anywhere(void **state UNUSED)
{
    make();
    size_t size = made.used * 4;

    for (size_t n = 0; n <= size; n++) {
        void *copy = malloc(n ? n : 1); // its end is guarded
        memcpy(copy, made.words, n);
        free(text_of(copy, n, 0));
        free(copy);
    }
}

static void survives_flipped_bits(void **state UNUSED)
{
    make();
    size_t size = made.used * 4;
    uint32_t refused = 0;

    for (size_t bit = 0; bit < size * 8; bit++) {
        uint8_t *copy = malloc(size);
        memcpy(copy, made.words, size);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        char *text = text_of(copy, size, bit % 2 ? 30 : 0);
        refused += !text;
        free(text);
        free(copy);
    }
    assert_true(refused > 100);
}

static void refuses_what_makes_no_sense(void **state UNUSED)
{
    static const struct {
        uint32_t words[8];
        uint32_t count;
    } bad[] = {
        { { 0, 4, 0, 0, 0 }, 5 },                       // an empty record
        { { 0, 4, 0, 0, 3 }, 5 },                       // longer than its block
        { { 0, 8, 0, 0, 2 | 1 << 5, 0 }, 6 },           // no time
        { { TRACE_CPUS_MAX, 0, 0, 0 }, 4 },             // no such CPU
        { { 0, 8, 0, 0, 2 | TRACE_R_TIME << 5, 0 }, 6 } // too short
    };
    struct trace_reader r = { .event = on_event };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_non_null(trace_reader_take(&r, bad[i].words, bad[i].count * 4));
    trace_reader_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delivers_in_the_order_of_time),
        cmocka_unit_test(holds_what_other_cpus_may_precede),
        cmocka_unit_test(delivers_up_to_where_a_block_was_cut),
        cmocka_unit_test(merges_cpus),
        cmocka_unit_test(fills_up_short_records),
        cmocka_unit_test(tells_of_functions_before_events),
        cmocka_unit_test(refuses_time_that_runs_backwards),
        cmocka_unit_test(prints_nested_calls),
        cmocka_unit_test(prints_numbers),
        cmocka_unit_test(shows_the_names_that_threads_have_now),
        cmocka_unit_test(a_loss_ends_the_calls_of_all_threads_of_its_cpu),
        cmocka_unit_test(leaves_short_calls_out),
        cmocka_unit_test(marks_calls_without_a_return),
        cmocka_unit_test(survives_a_cut_anywhere),
        cmocka_unit_test(survives_flipped_bits),
        cmocka_unit_test(refuses_what_makes_no_sense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
