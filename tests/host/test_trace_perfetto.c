// Traces for Perfetto: what is in the packets, of files that are whole, cut off
// at each byte, or damaged in each. The packets are decoded and checked as
// text:
//
//     begin|end|instant TIME KIND:ID NAME    on the track with this uuid
//     counter TIME KIND:ID VALUE
//     instant ... flow N | ends N            of the flow N
//     switch TIME CPU: PREV -> NEXT STATE
//     waking TIME CPU: THREAD on CPU
//     track KIND:ID parent KIND:ID NAME
//
// link: user/libtrace/reader.c user/libtrace/file.c user/libtrace/points.c
// link: user/libprofile/functions.c
// link: user/libtrace/lives.c user/libtrace/spans.c user/libtrace/event_text.c
// link: user/libtrace/call_names.c user/libstrobe/table.c
// link: user/libstrobe/messages.c tools/strobe-src/protobuf.c
// link: tools/strobe-src/perfetto_packet.c tools/strobe-src/trace_tracks.c
// link: tools/strobe-src/trace_flows.c tools/strobe-src/trace_perfetto.c
// link: user/libtrace/sensed.c user/libstrobe/sensor_recording.c
// link: user/libstrobe/sensor_print.c
#include "test.h"
#include "tests/host/trace_made.h"

#include "tools/strobe-src/trace_export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

// --- decoding ---------------------------------------------------------------

struct bytes {
    const uint8_t *at, *end;
};

struct field {
    uint32_t number;
    uint64_t value;      // of a number
    struct bytes inside; // of a message or text; else empty
};

static uint64_t take_varint(struct bytes *b)
{
    uint64_t value = 0;

    for (uint32_t shift = 0; shift < 64; shift += 7) {
        assert_true(b->at < b->end);
        value |= (uint64_t)(*b->at & 0x7f) << shift;
        if (!(*b->at++ & 0x80))
            return value;
    }
    fail_msg("a number is too long");
    return 0;
}

static bool take_field(struct bytes *b, struct field *f)
{
    if (b->at == b->end)
        return false;
    uint64_t tag = take_varint(b);
    *f = (struct field){ .number = (uint32_t)(tag >> 3) };
    if ((tag & 7) == 1) {
        assert_true(b->end - b->at >= 8);
        memcpy(&f->value, b->at, 8);
        b->at += 8;
        return true;
    }
    f->value = take_varint(b);
    if ((tag & 7) == 0)
        return true;
    assert_int_equal(tag & 7, 2);
    assert_true(f->value <= (uint64_t)(b->end - b->at));
    f->inside = (struct bytes){ b->at, b->at + f->value };
    b->at += f->value;
    return true;
}

// The last field with this number; none: its value is `otherwise`.
static struct field field_of(struct bytes message, uint32_t number,
                             uint64_t otherwise)
{
    struct field f, found = { .value = otherwise };

    while (take_field(&message, &f)) {
        if (f.number == number)
            found = f;
    }
    return found;
}

static uint64_t number_of(struct bytes message, uint32_t number)
{
    return field_of(message, number, 0).value;
}

// That must be there, even if it is 0.
static uint64_t needed(struct bytes message, uint32_t number)
{
    uint64_t value = field_of(message, number, UINT64_MAX).value;

    assert_true(value != UINT64_MAX);
    return value;
}

static struct bytes inside(struct bytes message, uint32_t number)
{
    return field_of(message, number, 0).inside;
}

// --- packets as text --------------------------------------------------------

static struct {
    FILE *out;
    char names[1024][32]; // interned
} decoded;

static void put_bytes(struct bytes text)
{
    fprintf(decoded.out, "%.*s", (int)(text.end - text.at),
            text.at ? (const char *)text.at : "");
}

static void put_uuid(uint64_t uuid)
{
    fprintf(decoded.out, " %" PRIu64 ":%" PRIu64, uuid >> 32,
            uuid & UINT32_MAX);
}

static void take_names(struct bytes interned)
{
    struct field f;

    while (take_field(&interned, &f)) {
        if (f.number != 2)
            continue;
        uint64_t id = number_of(f.inside, 1);
        struct bytes text = inside(f.inside, 2);
        assert_true(id > 0 && id < 1024);
        assert_int_equal(decoded.names[id][0], '\0'); // each once
        snprintf(decoded.names[id], 32, "%.*s", (int)(text.end - text.at),
                 (const char *)text.at);
    }
}

static void take_event(struct bytes e, uint64_t time)
{
    static const char *const types[] = { "?", "begin", "end", "instant",
                                         "counter" };
    uint64_t type = number_of(e, 9), name = number_of(e, 10);

    assert_true(type >= 1 && type <= 4 && name < 1024);
    fprintf(decoded.out, "%s %" PRIu64, types[type], time);
    put_uuid(number_of(e, 11));
    if (type == 4)
        fprintf(decoded.out, " %" PRIu64, needed(e, 30));
    if (name) {
        assert_true(decoded.names[name][0]);
        fprintf(decoded.out, " %s", decoded.names[name]);
    }
    put_bytes(inside(e, 23));
    if (number_of(e, 47))
        fprintf(decoded.out, " flow %" PRIu64, number_of(e, 47));
    if (number_of(e, 48))
        fprintf(decoded.out, " ends %" PRIu64, number_of(e, 48));
    fputc('\n', decoded.out);
}

static void take_bundle(struct bytes bundle)
{
    struct bytes e = inside(bundle, 2), s = inside(e, 4), w = inside(e, 20);

    fprintf(decoded.out, "%s %" PRIu64 " %" PRIu64 ":",
            s.at ? "switch" : "waking", needed(e, 1), needed(bundle, 1));
    if (s.at)
        fprintf(decoded.out, " %" PRIu64 " -> %" PRIu64 " %" PRIu64 "\n",
                needed(s, 2), needed(s, 6), needed(s, 4));
    else
        fprintf(decoded.out, " %" PRIu64 " on %" PRIu64 "\n", needed(w, 2),
                needed(w, 5));
}

static void take_track(struct bytes track)
{
    fputs("track", decoded.out);
    put_uuid(number_of(track, 1));
    fputs(" parent", decoded.out);
    put_uuid(number_of(track, 5));
    fputc(' ', decoded.out);
    put_bytes(inside(track, 2));
    put_bytes(inside(inside(track, 3), 6));
    put_bytes(inside(inside(track, 4), 5));
    fputc('\n', decoded.out);
}

static void take_packet(struct bytes packet)
{
    struct field f;

    assert_int_equal(number_of(packet, 10), 1);
    take_names(inside(packet, 12));
    for (struct bytes rest = packet; take_field(&rest, &f);) {
        if (f.number == 1)
            take_bundle(f.inside);
        else if (f.number == 11)
            take_event(f.inside, needed(packet, 8));
        else if (f.number == 60)
            take_track(f.inside);
    }
}

static char *text_of(const char *bytes, size_t size)
{
    const uint8_t *at = (const uint8_t *)bytes;
    struct bytes rest = { at, at + size };
    struct field f;
    char *text;

    memset(&decoded, 0, sizeof(decoded));
    decoded.out = open_memstream(&text, &size);
    while (take_field(&rest, &f)) {
        assert_int_equal(f.number, 1);
        take_packet(f.inside);
    }
    fclose(decoded.out);
    return text;
}

// Of the file that was made, `size` bytes. NULL: it cannot be opened. The
// caller frees it.
static char *perfetto_text(uint32_t size)
{
    size_t written;

    write_file(made.bytes, size);
    char *bytes = exported(trace_perfetto, &written);
    if (!bytes)
        return NULL;
    char *text = text_of(bytes, written);
    free(bytes);
    return text;
}

// --- whole files ------------------------------------------------------------

static void packets_are_what_happened(void **state UNUSED)
{
    make();
    char *text = perfetto_text(made.used);
    // Since the first event, at 0x10; switches and wakes by `at`.
    has(text, "\nwaking 0 0: 7 on 0\n");
    has(text, "\nswitch 27 0: 0 -> 7 0\n");
    has(text, "\nswitch 123 0: 7 -> 0 1\n");
    has(text, "\nwaking 157 0: 7 on 0\n");
    has(text, "\nswitch 235 0: 7 -> 0 16\n");
    has(text, "\nbegin 48 1:7 read\nend 208 1:7\n");
    has(text, "\nbegin 224 1:7 exit\nend 240 1:7\n");
    has(text, "\nbegin 64 3:0 interrupt 48\nend 80 3:0\n");
    has(text, "\ninstant 0 4:0 recording\n");
    has(text, "\ncounter 0 5:0 0\n");
    has(text, "\ntrack 1:7 parent 0:0 dd\n");
    has(text, "\ntrack 2:7 parent 0:0 dd\n");
    has(text, "\ntrack 3:0 parent 4:0 CPU 0\n");
    assert_int_equal(count_of(text, "\nswitch "), 4);
    assert_int_equal(count_of(text, "\nwaking "), 2);
    assert_int_equal(count_of(text, "\nbegin "), 3);
    assert_int_equal(count_of(text, "\nend "), 3);
    assert_int_equal(count_of(text, "\ninstant "), 1);
    assert_int_equal(count_of(text, "\ncounter "), 1);
    free(text);
}

static void losses_are_told_where_they_are(void **state UNUSED)
{
    make_lossy();
    char *text = perfetto_text(made.used);
    has(text, "\ncounter 80 5:0 40\ninstant 80 3:0 LOST\n");
    has(text, "\ncounter 96 5:0 42\n");
    has(text, "\nswitch 80 0: 0 -> 9 0\n");
    has(text, "\ninstant 96 1:9 timer/fire\n");
    has(text, "\nbegin 16 1:7 page fault\nend 32 1:7\n");
    has(text, "\nbegin 48 3:1 interrupt 50\nend 64 3:1\n");
    // Whether the call went on is lost.
    assert_null(strstr(text, "read"));
    free(text);
}

static void add_ipc(uint64_t time, uint32_t type, uint32_t flow)
{
    uint32_t fields[] = { flow, 2, 3 };

    add_event(time, type, fields, type == TRACE_ipc_call ? 12 : 8);
}

static void calls_are_flows(void **state UNUSED)
{
    struct trace_file_end e = { TRACE_FILE_ENDED, 0, { 10 }, { 0 }, { 0 } };

    make_head(1);
    begin_blocks();
    begin_block(0, START + 0x800);
    add_time(START, 7);
    add_ipc(START + 1, TRACE_ipc_take, 0xc000); // its call is not in the trace
    add_ipc(START + 2, TRACE_ipc_call, 0xd000);
    add_ipc(START + 3, TRACE_ipc_take, 0xd000);
    add_ipc(START + 4, TRACE_ipc_call, 0xe000);
    add_ipc(START + 5, TRACE_ipc_forward, 0xd000);
    add_ipc(START + 6, TRACE_ipc_answer, 0xe000);
    add_ipc(START + 7, TRACE_ipc_answer, 0xd000);
    add_ipc(START + 8, TRACE_ipc_answer, 0xc000);
    add_ipc(START + 9, TRACE_ipc_call, 0xd000); // the same memory
    add_ipc(START + 10, TRACE_ipc_answer, 0xd000);
    add_chunk(TRACE_FILE_END, &e, sizeof(e));
    char *text = perfetto_text(made.used);
    has(text, "\ninstant 0 1:7 ipc/take\n"
              "instant 1 1:7 ipc/call flow 1\n"
              "instant 2 1:7 ipc/take flow 1\n"
              "instant 3 1:7 ipc/call flow 2\n"
              "instant 4 1:7 ipc/forward flow 1\n"
              "instant 5 1:7 ipc/answer ends 2\n"
              "instant 6 1:7 ipc/answer ends 1\n"
              "instant 7 1:7 ipc/answer\n"
              "instant 8 1:7 ipc/call flow 3\n"
              "instant 9 1:7 ipc/answer ends 3\n");
    free(text);
}

static void counts_are_counters(void **state UNUSED)
{
    make_counts(true);
    char *text = perfetto_text(made.used);
    has(text, "\ntrack 9:0 parent 3:0 cycles\n");
    has(text, "\ntrack 9:1 parent 3:0 instructions\n");
    has(text, "\ncounter 0 9:0 1000\ncounter 0 9:1 2000\n"
              "instant 0 1:7 sched/pmc\n");
    has(text, "\ncounter 32 9:0 4294967296\ncounter 32 9:1 7\n");
    free(text);
}

static void one_task_has_no_scheduling(void **state UNUSED)
{
    uint32_t task = 7;

    make();
    memcpy(made.bytes + offsetof(struct trace_file_head, task), &task,
           sizeof(task));
    char *text = perfetto_text(made.used);
    has(text, "\ntrack 6:7 parent 1:7 running\n");
    has(text, "\nbegin 27 6:7 running\nend 123 6:7\n");
    assert_int_equal(count_of(text, " running\nend "), 2);
    assert_int_equal(count_of(text, "sched/wake\n"), 2);
    assert_null(strstr(text, "switch"));
    assert_null(strstr(text, "waking"));
    free(text);
}

// --- damage -----------------------------------------------------------------

static void what_is_whole_is_written(void **state UNUSED)
{
    uint32_t switches = 0, slices = 0;

    make();
    for (uint32_t n = 0; n <= made.used; n++) {
        char *text = perfetto_text(n);
        if (!text)
            continue;
        assert_int_equal(count_of(text, "\nbegin "), count_of(text, "\nend "));
        assert_true(count_of(text, "\nswitch ") >= switches);
        assert_true(count_of(text, "\nbegin ") + 1 >= slices);
        assert_int_equal(count_of(text, " the file was cut off\n"),
                         n < made.used);
        switches = count_of(text, "\nswitch ");
        slices = count_of(text, "\nbegin ");
        free(text);
    }
    assert_int_equal(switches, 4);
}

static void damage_does_no_harm(void **state UNUSED)
{
    make_lossy();
    for (uint32_t n = 0; n < made.used; n++) {
        made.bytes[n] ^= 0xff;
        free(perfetto_text(made.used));
        made.bytes[n] ^= 0xff;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_are_what_happened),
        cmocka_unit_test(losses_are_told_where_they_are),
        cmocka_unit_test(calls_are_flows),
        cmocka_unit_test(counts_are_counters),
        cmocka_unit_test(one_task_has_no_scheduling),
        cmocka_unit_test(what_is_whole_is_written),
        cmocka_unit_test(damage_does_no_harm),
    };

    return cmocka_run_group_tests(tests, begin_file, remove_file);
}
