// Traces as trace.dat files: the head, the formats and the pages, of files that
// are whole, cut off at each byte, or damaged in each.
//
// link: user/libtrace/reader.c user/libtrace/file.c user/libtrace/points.c
// link: user/libprofile/functions.c
// link: user/libtrace/call_names.c
// link: tools/strobe-src/trace_dat.c tools/strobe-src/trace_dat_events.c
// link: user/libtrace/sensed.c user/libstrobe/sensor_recording.c
// link: user/libstrobe/sensor_print.c user/libstrobe/messages.c
// link: user/libstrobe/table.c
// link: tools/strobe-src/trace_dat_linux.c
#include "test.h"
#include "tests/host/trace_made.h"

#include "tools/strobe-src/trace_export.h"

#include <stdlib.h>
#include <unistd.h>

#define PAGE 4096u
#define EVENTS_MAX 4096u

struct event {
    uint32_t id, cpu, lost_before, bytes;
    uint64_t time;
    const uint8_t *data;
};

// A file that was written, and what is in it.
static struct {
    uint8_t *bytes;
    size_t size, at;
    const char *formats, *names, *statistics;
    struct event events[EVENTS_MAX];
    uint32_t count, cpus, pages;
} dat;

static uint64_t number_at(const uint8_t *p, uint32_t bytes)
{
    uint64_t n = 0;

    memcpy(&n, p, bytes);
    return n;
}

static const uint8_t *take(uint64_t bytes)
{
    const uint8_t *p = dat.bytes + dat.at;

    assert_true(bytes <= dat.size - dat.at);
    dat.at += bytes;
    return p;
}

static uint64_t take_number(uint32_t bytes)
{
    return number_at(take(bytes), bytes);
}

static void take_text(const char *text)
{
    assert_string_equal((const char *)take(strlen(text) + 1), text);
}

// A copy of what follows its size.
static char *take_sized(uint32_t size_bytes)
{
    uint64_t size = take_number(size_bytes);
    const uint8_t *p = take(size);
    char *text = calloc(size + 1, 1);

    memcpy(text, p, size);
    return text;
}

static void take_formats(void)
{
    char *all = calloc(65536, 1);

    assert_int_equal(take_number(4), 0); // of "ftrace"
    for (uint64_t systems = take_number(4); systems; systems--) {
        strcat(strcat(all, "system "), (const char *)dat.bytes + dat.at);
        take(strlen((const char *)dat.bytes + dat.at) + 1);
        strcat(all, "\n");
        for (uint64_t events = take_number(4); events; events--) {
            char *text = take_sized(8);
            assert_true(strlen(all) + strlen(text) < 65536);
            strcat(all, text);
            free(text);
        }
    }
    dat.formats = all;
}

static void take_options(void)
{
    take_text("options  ");
    for (uint64_t option; (option = take_number(2));) {
        char *text = take_sized(4);
        if (option == 2) {
            dat.statistics = text;
            continue;
        }
        assert_int_equal(option, 4);
        assert_memory_equal(dat.bytes + dat.at - 7, "[mono]", 7);
        free(text);
    }
    take_text("flyrecord");
}

static void take_page(const uint8_t *page, uint32_t cpu, uint64_t *last)
{
    uint64_t time = number_at(page, 8), commit = number_at(page + 8, 4);
    uint32_t size = commit & ((1u << 27) - 1), at = 12, lost = 0;

    assert_true(size > 0 && size <= PAGE - at - 4);
    if (commit & 1u << 31) {
        assert_true(commit & 1u << 30);
        lost = (uint32_t)number_at(page + at + size, 4);
    }
    while (at < 12 + size) {
        uint32_t head = (uint32_t)number_at(page + at, 4), length = head & 31;
        uint64_t delta = head >> 5;
        if (length == 30) {
            assert_true(at > 12); // else readers do not tell of losses
            time += delta + (number_at(page + at + 4, 4) << 27);
            at += 8;
            continue;
        }
        assert_true(length >= 3 && length <= 28);
        time += delta;
        assert_true(time >= *last && dat.count < EVENTS_MAX);
        *last = time;
        dat.events[dat.count++] = (struct event){
            .id = (uint32_t)number_at(page + at + 4, 2),
            .cpu = cpu,
            .lost_before = lost,
            .bytes = length * 4,
            .time = time,
            .data = page + at + 4,
        };
        lost = 0;
        at += 4 + length * 4;
    }
    assert_int_equal(at, 12 + size);
}

static void take_file(void)
{
    struct {
        uint64_t at, size;
    } place[TRACE_CPUS_MAX];

    assert_memory_equal(take(14), "\x17\x08\x44tracing6\0\0\x04", 14);
    assert_int_equal(take_number(4), PAGE);
    take_text("header_page");
    free(take_sized(8));
    take_text("header_event");
    free(take_sized(8));
    take_formats();
    assert_int_equal(take_number(4), 0);
    assert_int_equal(take_number(4), 0);
    dat.names = take_sized(8);
    dat.cpus = (uint32_t)take_number(4);
    assert_true(dat.cpus > 0 && dat.cpus <= TRACE_CPUS_MAX);
    take_options();
    for (uint32_t i = 0; i < dat.cpus; i++) {
        place[i].at = take_number(8);
        place[i].size = take_number(8);
    }
    assert_int_equal(take_number(8), 7);
    take_text("[mono]");
    dat.at = (dat.at + PAGE - 1) / PAGE * PAGE;
    for (uint32_t i = 0; i < dat.cpus; i++) {
        uint64_t last = 0;
        assert_int_equal(place[i].at, dat.at);
        for (uint64_t n = place[i].size; n; n -= PAGE, dat.pages++) {
            assert_true(n >= PAGE);
            take_page(take(PAGE), i, &last);
        }
    }
    assert_int_equal(dat.at, dat.size);
}

// False: the file cannot be opened.
static bool write_dat(void)
{
    memset(&dat, 0, sizeof(dat));
    dat.bytes = (uint8_t *)exported(trace_dat, &dat.size);
    if (dat.bytes)
        take_file();
    return dat.bytes;
}

static void free_dat(void)
{
    free(dat.bytes);
    free((void *)dat.formats);
    free((void *)dat.names);
    free((void *)dat.statistics);
}

// The part of the formats that is of this event.
static const char *format_of(const char *name)
{
    char line[64];

    snprintf(line, sizeof(line), "name: %s\n", name);
    has(dat.formats, line);
    return strstr(dat.formats, line);
}

// The Nth event of this name.
static const struct event *event_of(const char *name, uint32_t n)
{
    uint32_t id;

    assert_int_equal(sscanf(strstr(format_of(name), "ID:"), "ID: %u", &id), 1);
    for (uint32_t i = 0; i < dat.count; i++) {
        if (dat.events[i].id == id && n-- == 0)
            return &dat.events[i];
    }
    fail_msg("no such event: %s", name);
    return NULL;
}

// A field, as readers find it.
static const uint8_t *field_of(const char *name, uint32_t n, const char *field,
                               uint32_t *size)
{
    const struct event *e = event_of(name, n);
    char text[64];
    uint32_t offset;

    snprintf(text, sizeof(text), " %s;\toffset:", field);
    const char *at = strstr(format_of(name), text);
    assert_non_null(at);
    at += strlen(text);
    assert_int_equal(sscanf(at, "%u;\tsize:%u;", &offset, size), 2);
    assert_true(offset + *size <= e->bytes);
    return e->data + offset;
}

static void is(const char *name, uint32_t n, const char *field, uint64_t value)
{
    uint32_t size;
    const uint8_t *p = field_of(name, n, field, &size);

    assert_int_equal(number_at(p, size), value);
}

static void is_comm(const char *name, const char *field, const char *value)
{
    uint32_t size;
    const uint8_t *p = field_of(name, 0, field, &size);

    assert_int_equal(size, 16);
    assert_string_equal((const char *)p, value);
}

static void events_have_linuxs_fields(void **state UNUSED)
{
    make();
    write_file(made.bytes, made.used);
    assert_true(write_dat());
    assert_int_equal(dat.count, EVENTS);
    assert_int_equal(dat.cpus, 1);
    has(dat.names, "7 dd\n");
    has(dat.statistics, "command: dd if=x\nCPU: 0\nevents: 12\n"
                        "lost: 0\n");
    is_comm("sched_switch", "prev_comm[16]", "swapper/0");
    is_comm("sched_switch", "next_comm[16]", "dd");
    is("sched_switch", 0, "prev_pid", 0);
    is("sched_switch", 0, "next_pid", 7);
    is("sched_switch", 1, "prev_state", 1);  // waits
    is("sched_switch", 3, "prev_state", 16); // ends
    assert_int_equal(event_of("sched_switch", 0)->time, START + 0x30);
    is_comm("sched_wakeup", "comm[16]", "dd");
    is("sched_wakeup", 1, "pid", 7);
    is("sched_wakeup", 1, "common_pid", 0);
    is("sys_enter", 0, "id", 3);
    is("sys_enter", 0, "common_pid", 7);
    is("sys_exit", 0, "ret", (uint32_t)-5);
    has(strstr(format_of("sys_exit"), "print fmt"), "{ 3, \"read\" }");
    is("irq_handler_entry", 0, "irq", 48);
    is("irq_handler_exit", 0, "irq", 48);
    is("irq_return", 0, "at", (uint32_t)START + 0x6e);
    free_dat();
}

static void add_signals(void)
{
    struct trace_signal_send send = { .task = 7, .thread = 8, .signal = 10 };
    struct trace_signal_deliver deliver = { .handler = 0x1234, .signal = 10 };

    add_event(START + 1, TRACE_signal_send, &send, sizeof(send));
    send.thread = 0;
    add_event(START + 2, TRACE_signal_send, &send, sizeof(send));
    add_event(START + 3, TRACE_signal_deliver, &deliver, sizeof(deliver));
}

static void add_tasks(void)
{
    struct trace_sched_migrate migrate = { .thread = 7, .from = 3, .to = 1 };

    add_words(START + 11, TRACE_task_fork, 8, 9, 2);
    add_words(START + 12, TRACE_task_thread, 8, 10, 2);
    add_words(START + 13, TRACE_task_exec, 7, 0, 1);
    add_words(START + 14, TRACE_task_exit, 7, 256, 2);
    add_event(START + 15, TRACE_sched_migrate, &migrate, sizeof(migrate));
}

static void signals_tasks_and_idle_cpus_are_linuxs(void **state UNUSED)
{
    make_head(2);
    begin_blocks();
    begin_block(1, START + 0x800);
    add_time(START, 7);
    add_signals();
    add_tasks();
    add_words(START + 21, TRACE_cpu_halt, (uint32_t)START, 0, 1);
    add_words(START + 22, TRACE_cpu_resume, (uint32_t)START, 0, 1);
    write_file(made.bytes, made.used);
    assert_true(write_dat());
    assert_int_equal(dat.count, 10);
    is("signal_generate", 0, "pid", 8);
    is("signal_generate", 0, "group", 0);
    is("signal_generate", 1, "pid", 7);
    is("signal_generate", 1, "group", 1);
    is("signal_generate", 1, "sig", 10);
    is("signal_deliver", 0, "sig", 10);
    is("signal_deliver", 0, "sa_handler", 0x1234);
    is_comm("sched_process_fork", "parent_comm[16]", "dd");
    is("sched_process_fork", 0, "parent_pid", 7);
    is("sched_process_fork", 0, "child_pid", 9);
    is("sched_process_fork", 1, "child_pid", 10);
    is("sched_process_exec", 0, "old_pid", 7);
    is_comm("sched_process_exit", "comm[16]", "dd");
    is("sched_process_exit", 0, "status", 256);
    is("sched_migrate_task", 0, "pid", 7);
    is("sched_migrate_task", 0, "orig_cpu", 3);
    is("sched_migrate_task", 0, "dest_cpu", 1);
    is("cpu_idle", 0, "state", 1);
    is("cpu_idle", 1, "state", UINT32_MAX);
    is("cpu_idle", 1, "cpu_id", 1);
    free_dat();
}

static void losses_are_before_the_next_event(void **state UNUSED)
{
    make_lossy();
    write_file(made.bytes, made.used);
    assert_true(write_dat());
    assert_int_equal(dat.count, 8);
    assert_int_equal(dat.cpus, 2);
    assert_int_equal(event_of("sched_switch", 0)->lost_before, LOST);
    for (uint32_t i = 0, told = 0; i < dat.count; i++) {
        told += dat.events[i].lost_before;
        assert_true(told <= LOST);
    }
    has(dat.statistics, "lost: 40\n");
    has(dat.statistics, "of any CPU: 2\n");
    is_comm("sched_switch", "next_comm[16]", "?");
    is("page_fault_user", 0, "address", 0x5000);
    is("page_fault_user", 0, "error_code", 6);
    is("timer_fire", 0, "late", 9);
    free_dat();
}

static void losses_behind_all_are_counted(void **state UNUSED)
{
    make_head(1);
    begin_blocks();
    begin_block(0, START + 0x800);
    add_time(START, 7);
    add_words(START + 1, TRACE_page_fault, 0x5000, 2, 2);
    add_lost(START + 2, 0, 5);
    write_file(made.bytes, made.used);
    assert_true(write_dat());
    is("page_fault_kernel", 0, "address", 0x5000);
    has(dat.statistics, "lost after its last event: 5\n");
    has(dat.statistics, "the trace was cut off\n");
    free_dat();
}

static void many_pages_and_long_gaps(void **state UNUSED)
{
    uint32_t n = 1200;
    uint64_t gap = 1ull << 30;

    make_head(1);
    begin_blocks();
    begin_block(0, START + gap + 0x8000);
    add_time(START, 7);
    for (uint32_t i = 1; i <= n; i++)
        add_words(START + i, TRACE_irq_exit, 48, 0, 1);
    add_time(START + gap, 7);
    add_words(START + gap + 3, TRACE_irq_exit, 49, 0, 1);
    write_file(made.bytes, made.used);
    assert_true(write_dat());
    assert_int_equal(dat.count, n + 1);
    assert_true(dat.pages > 2);
    assert_int_equal(dat.events[n - 1].time, START + n);
    assert_int_equal(dat.events[n].time, START + gap + 3);
    is("irq_handler_exit", n, "irq", 49);
    free_dat();
}

static void what_is_whole_is_written(void **state UNUSED)
{
    uint32_t events = 0;

    make();
    for (uint32_t n = 0; n <= made.used; n++) {
        write_file(made.bytes, n);
        if (!write_dat())
            continue;
        assert_true(dat.count >= events);
        events = dat.count;
        free_dat();
    }
    assert_int_equal(events, EVENTS);
}

static void damage_does_no_harm(void **state UNUSED)
{
    make_lossy();
    for (uint32_t n = 0; n < made.used; n++) {
        made.bytes[n] ^= 0xff;
        write_file(made.bytes, made.used);
        if (write_dat())
            free_dat();
        made.bytes[n] ^= 0xff;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_have_linuxs_fields),
        cmocka_unit_test(signals_tasks_and_idle_cpus_are_linuxs),
        cmocka_unit_test(losses_are_before_the_next_event),
        cmocka_unit_test(losses_behind_all_are_counted),
        cmocka_unit_test(many_pages_and_long_gaps),
        cmocka_unit_test(what_is_whole_is_written),
        cmocka_unit_test(damage_does_no_harm),
    };

    return cmocka_run_group_tests(tests, begin_file, remove_file);
}
