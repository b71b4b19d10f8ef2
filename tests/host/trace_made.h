// Makes a file of `trace record`, for host tests: its chunks, blocks and
// records, and one with two threads, a call that fails, an interrupt, and an
// end.
#pragma once

#include "user/libtrace/file.h"
#include "user/libtrace/points.h"

#include <strobe/trace_file.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM 65536u

static struct {
    uint8_t bytes[ROOM];
    uint32_t used, chunk, block;
} made;

static inline void add(const void *bytes, uint32_t size)
{
    assert_true(made.used + size <= ROOM);
    memcpy(made.bytes + made.used, bytes, size);
    made.used += size;
}

static inline void grow_word(uint32_t at, uint32_t by)
{
    uint32_t word;

    memcpy(&word, made.bytes + at, sizeof(word));
    word += by;
    memcpy(made.bytes + at, &word, sizeof(word));
}

static inline void add_chunk(uint32_t kind, const void *body, uint32_t bytes)
{
    struct trace_file_chunk c = { .kind = kind, .bytes = bytes };

    add(&c, sizeof(c));
    add(body, bytes);
}

static inline void begin_blocks(void)
{
    made.chunk = made.used + 4;
    add_chunk(TRACE_FILE_BLOCKS, "", 0);
}

static inline void begin_block(uint32_t cpu, uint64_t until)
{
    struct trace_block b = { .cpu = cpu, .until = until };

    made.block = made.used + 4;
    add(&b, sizeof(b));
    grow_word(made.chunk, sizeof(b));
}

static inline void add_record(const void *record, uint32_t bytes)
{
    add(record, bytes);
    grow_word(made.chunk, bytes);
    grow_word(made.block, bytes);
}

static inline void add_time(uint64_t time, uint32_t thread)
{
    struct trace_time t = { .head = TRACE_HEAD(time, TRACE_R_TIME, 4),
                            .thread = thread,
                            .time = { (uint32_t)time,
                                      (uint32_t)(time >> 32) } };
    add_record(&t, sizeof(t));
}

static inline void add_lost(uint64_t time, uint32_t thread, uint32_t count)
{
    struct trace_lost l = { .time = { .head = TRACE_HEAD(time, TRACE_R_LOST, 5),
                                      .thread = thread,
                                      .time = { (uint32_t)time,
                                                (uint32_t)(time >> 32) } },
                            .count = count };
    add_record(&l, sizeof(l));
}

static inline void add_event(uint64_t time, uint32_t type, const void *fields,
                             uint32_t bytes)
{
    uint32_t words = 1 + (bytes + 3) / 4, record[TRACE_WORDS_MAX] = { 0 };

    record[0] = TRACE_HEAD(time, type, words);
    memcpy(record + 1, fields, bytes);
    add_record(record, words * 4);
}

static inline void add_switch(uint64_t time, uint32_t prev, uint32_t next,
                              uint8_t state)
{
    struct trace_sched_switch s = { prev, next, state, (uint32_t)time - 5 };
    add_event(time, TRACE_sched_switch, &s, sizeof(s));
}

static inline void add_wake(uint64_t time, uint32_t thread)
{
    struct trace_sched_wake w = { thread, 0, (uint32_t)time - 3 };
    add_event(time, TRACE_sched_wake, &w, sizeof(w));
}

static inline void add_words(uint64_t time, uint32_t type, uint32_t a,
                             uint32_t b, uint32_t words)
{
    uint32_t fields[] = { a, b };
    add_event(time, type, fields, words * 4);
}

static inline void add_points(void)
{
    char text[4096] = "";

    for (uint32_t i = 0; i < TRACE_POINTS; i++)
        strcat(text, trace_point_fields(i));
    add_chunk(TRACE_FILE_POINTS, text, (uint32_t)strlen(text));
}

// Two functions, of which one calls the other at `time`, 0x20 bytes into it.
#define FUNCTIONS "c0101000 64 vfs_read fs/vfs.c\nc0102000 80 copy lib/copy.c\n"

static inline void add_functions(void)
{
    add_chunk(TRACE_FILE_FUNCTIONS, FUNCTIONS, sizeof(FUNCTIONS) - 1);
}

static inline void add_call(uint64_t time)
{
    uint32_t fields[] = { 0xc0102000 + TRACE_CALL_OFFSET, 0xc0101020 };
    add_event(time, TRACE_R_CALL, fields, sizeof(fields));
}

// What two counters have counted until `thread` leaves CPU 0, by their names.
static inline void add_counters(void)
{
    add_chunk(TRACE_FILE_COUNTERS, "cycles\ninstructions\n", 20);
}

static inline void add_counts(uint64_t time, uint32_t thread, uint64_t first,
                              uint64_t second)
{
    struct trace_sched_pmc c = { thread, first, second };
    add_event(time, TRACE_sched_pmc, &c, sizeof(c));
}

#define START 0x100001000ull // its low word is small: `at` may lie before it

// The file up to its events.
static inline void make_head(uint32_t cpus)
{
    struct trace_file_head h = {
        .magic = TRACE_FILE_MAGIC,
        .version = TRACE_FILE_VERSION,
        .bytes = sizeof(h),
        .trace_version = TRACE_VERSION,
        .cpus = cpus,
        .points = TRACE_ALL_POINTS,
        .tsc_hz = { 1000000000 },
        .event_cycles = 70,
    };
    struct trace_file_thread t = { 7, 7, "dd" };

    memset(&made, 0, sizeof(made));
    add(&h, sizeof(h));
    add_points();
    add_chunk(TRACE_FILE_COMMAND, "dd if=x", 7);
    add_chunk(TRACE_FILE_THREAD, &t, sizeof(t));
    add_chunk(99, "unknown", 7);
}

// A block of two threads' runs.
static inline void make_counts(bool named)
{
    make_head(1);
    if (named)
        add_counters();
    begin_blocks();
    begin_block(0, START + 0x800);
    add_time(START, 7);
    add_counts(START + 0x10, 7, 1000, 2000);
    add_counts(START + 0x20, 0, 500, 100);
    add_counts(START + 0x30, 7, 0x100000000ull, 7);
}

#define EVENTS 12u

static inline void make_events(void)
{
    struct trace_file_end e = { TRACE_FILE_ENDED, 0, { EVENTS }, { 0 }, { 0 } };

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

static inline void make(void)
{
    make_head(1);
    make_events();
}

static inline void make_flight(const struct trace_file_flight *flight)
{
    make_head(1);
    add_chunk(TRACE_FILE_FLIGHT, flight, sizeof(*flight));
    make_events();
}

#define LOST 40u
#define LOST_AT_END 2u

// Two CPUs; on one events are missing.
static inline void make_lossy(void)
{
    struct trace_file_end e = {
        TRACE_FILE_ENDED, 0, { 8 }, { LOST + LOST_AT_END }, { 0 }
    };

    make_head(2);
    begin_blocks();
    begin_block(0, START + 0x800);
    add_time(START, 7);
    add_words(START + 0x10, TRACE_syscall_enter, 3, 0, 1);
    add_words(START + 0x20, TRACE_page_fault, 0x5000, 6, 2);
    add_words(START + 0x30, TRACE_page_fault_end, 0, 0, 1);
    add_lost(START + 0x60, 0, LOST);
    add_switch(START + 0x62, 0, 9, 0); // by `at` it is before the loss
    add_words(START + 0x70, TRACE_timer_fire, 0x1234, 9, 2);
    begin_block(1, START + 0x800);
    add_time(START, 8);
    add_wake(START + 0x11, 7);
    add_words(START + 0x40, TRACE_irq_enter, 50, (uint32_t)START + 0x3e, 2);
    add_words(START + 0x50, TRACE_irq_exit, 50, 0, 1);
    add_chunk(TRACE_FILE_END, &e, sizeof(e));
}

static char path[] = "/tmp/test_trace_file.XXXXXX";

static inline void write_file(const void *bytes, uint32_t size)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

// A group's setup and teardown.
static inline int begin_file(void **state UNUSED)
{
    int fd = mkstemp(path);

    return fd < 0 ? -1 : close(fd);
}

static inline int remove_file(void **state UNUSED)
{
    return unlink(path);
}

// What an export writes of that file: *size bytes, and a NUL. NULL: it cannot
// be opened. The caller frees it.
static inline char *
exported(const char *(*write)(FILE *out, struct trace_file *f), size_t *size)
{
    static struct trace_file f;
    char *bytes;

    if (trace_file_open(&f, path))
        return NULL;
    FILE *out = open_memstream(&bytes, size);
    write(out, &f);
    fclose(out);
    trace_file_close(&f);
    return bytes;
}

static inline void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in:\n%s", part, text);
}

static inline uint32_t count_of(const char *text, const char *part)
{
    uint32_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

// Reads a file that was exported to the directory, and removes it. NULL: there
// is none.
static inline uint8_t *take_export(const char *directory, const char *name,
                                   size_t *size)
{
    char file[64];

    snprintf(file, sizeof(file), "%s/%s", directory, name);
    FILE *in = fopen(file, "rb");
    if (!in)
        return NULL;
    uint8_t *bytes = calloc(1, ROOM);
    *size = fread(bytes, 1, ROOM - 1, in);
    fclose(in);
    assert_int_equal(unlink(file), 0);
    return bytes;
}
