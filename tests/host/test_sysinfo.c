// The pure parts of the sysinfo tree: path patterns, tables of record types,
// and printing of records.
// link: kernel/monitor/pattern.c user/libstrobe/sysinfo.c
// link: user/libstrobe/sysinfo_print.c user/libstrobe/sysinfo_tool.c
// link: user/libstrobe/table.c user/libstrobe/messages.c
// link: user/libstrobe/number.c
#include "test.h"

#include <errno.h>

#include "kernel/monitor/pattern.h"
#include "user/libstrobe/sysinfo.h"

// ---- patterns

static void expect_match(const char *pattern, const char *path,
                         enum pattern_result result, u32 number,
                         const char *rest)
{
    // In memory of the exact size: ASan detects a read beyond it.
    size_t len = strlen(path);
    char *exact = malloc(len);
    const char *got_rest;
    u32 got_number;

    memcpy(exact, path, len);
    assert_int_equal(pattern_match(pattern, exact, len, &got_number, &got_rest),
                     result);
    free(exact);
    if (result == PATTERN_EXACT || result == PATTERN_ABOVE)
        assert_int_equal(got_number, number);
    if (result == PATTERN_ABOVE)
        assert_string_equal(got_rest, rest);
}

static void patterns(void **state UNUSED)
{
    const char *p = "system.tasks.#.threads";

    expect_match(p, "", PATTERN_ABOVE, 0, p);
    expect_match(p, "system", PATTERN_ABOVE, 0, "tasks.#.threads");
    expect_match(p, "system.tasks", PATTERN_ABOVE, 0, "#.threads");
    expect_match(p, "system.tasks.42", PATTERN_ABOVE, 42, "threads");
    expect_match(p, "system.tasks.42.threads", PATTERN_EXACT, 42, NULL);
    expect_match(p, "system.tasks.0.threads", PATTERN_EXACT, 0, NULL);
    expect_match(p, "system.tasks.4294967295", PATTERN_ABOVE, UINT32_MAX,
                 "threads");
    const char *const before[] = {
        // the pattern is
        "systems",
        "systems.x",
        "system.taskss",
        "system.tasks.-1",
        "system.tasks.+1",
        "system.tasks.x",
        "system.tasks.1x",
        "system.tasks.01",
        "system.tasks.00",
        "system.tasks.4294967296",
        "system.tasks.99999999999999999999",
        "system.tasks..",
        "system.tasks.42.threads.",
        "system.tasks.42.threads.1",
        "system.uptime",
        "t",
    };
    const char *const behind[] = {
        "syste",          "system.task", "system.",
        ".system",        ".",           "..",
        "system.tasks.",  "System",      "system.tasks.42.thread",
        "system.tasks.#", "42",          "system.load",
    };
    for (size_t i = 0; i < ARRAY_SIZE(before); i++)
        expect_match(p, before[i], PATTERN_BEFORE, 0, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(behind); i++)
        expect_match(p, behind[i], PATTERN_BEHIND, 0, NULL);
    expect_match("kernel.version", "kernel.version", PATTERN_EXACT, 0, NULL);
    expect_match("kernel.version", "kernel", PATTERN_ABOVE, 0, "version");
}

static void pattern_with_nul(void **state UNUSED)
{
    const char *rest;
    u32 number;

    assert_int_equal(pattern_match("system", "system\0", 7, &number, &rest),
                     PATTERN_BEHIND);
    assert_int_equal(pattern_match("system.x", "system\0x", 8, &number, &rest),
                     PATTERN_BEHIND);
}

// ---- record types

// Fields have no gaps, in 64-bit programs too, and cover the whole structure.
static void layouts(void **state UNUSED)
{
    const struct sysinfo_record_type *t;
    u32 n = 0;

    assert_null(sysinfo_record_type(0));
    for (u32 r = 1; (t = sysinfo_record_type(r)) != NULL; r++, n++) {
        u32 end = 0;
        for (u32 i = 0; i < t->field_count; i++) {
            const struct sysinfo_field *f = &t->fields[i];
            assert_int_equal(f->offset, end);
            assert_int_equal(f->size % 4, 0);
            assert_true(f->name[0] != '\0' && f->meaning[0] != '\0');
            assert_string_not_equal(sysinfo_unit_name(f->unit), "?");
            for (u32 j = 0; j < i; j++)
                assert_string_not_equal(f->name, t->fields[j].name);
            end += f->size;
        }
        assert_int_equal(end, t->size);
    }
    assert_int_equal(n, SYSINFO_RECORD_TYPES - 1);
    assert_null(sysinfo_record_type(UINT32_MAX));
    assert_string_equal(sysinfo_record_type(SYSINFO_RECORD_TASK)->name, "task");
}

static void names(void **state UNUSED)
{
    assert_string_equal(sysinfo_state_name(SYSINFO_ZOMBIE), "zombie");
    assert_string_equal(sysinfo_state_name(SYSINFO_ZOMBIE + 1), "?");
    assert_string_equal(sysinfo_unit_name(SYSINFO_UNITS), "?");
}

// ---- printing

static char *printed(u32 record, const void *records, size_t count, bool json)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (json)
        sysinfo_print_json(out, record, records, count);
    else
        sysinfo_print(out, record, records, count);
    fclose(out);
    return text;
}

static void expect_printed(u32 record, const void *records, size_t count,
                           bool json, const char *wanted)
{
    char *text = printed(record, records, count, json);

    assert_string_equal(text, wanted);
    free(text);
}

static void json(void **state UNUSED)
{
    struct sysinfo_load load = { 65536, 65536 / 4, 1, 3, 12 };
    struct sysinfo_audit audit[2] = {
        { .cpu = 1, .account = "all", .elapsed = UINT64_MAX, .difference = -5 },
        { .cpu = SYSINFO_ALL, .account = "a\"\\\n" },
    };

    expect_printed(SYSINFO_RECORD_LOAD, &load, 1, true,
                   "[\n  {\"one\": 1.000000, \"five\": 0.250000, "
                   "\"fifteen\": 0.000015, \"runnable\": 3, "
                   "\"updates\": 12}\n]");
    expect_printed(SYSINFO_RECORD_LOAD, NULL, 0, true, "[]");
    expect_printed(
        SYSINFO_RECORD_AUDIT, audit, 2, true,
        "[\n  {\"cpu\": 1, \"account\": \"all\", \"elapsed\": "
        "18446744073709551615, \"sum\": 0, \"difference\": -5},\n"
        "  {\"cpu\": null, \"account\": \"a\\\"\\\\\\u000a\", \"elapsed\": 0, "
        "\"sum\": 0, \"difference\": 0}\n]");
}

static void json_of_states(void **state UNUSED)
{
    struct sysinfo_exception e = { .vector = 14, .cpu = 0, .hot = 1 };
    struct sysinfo_thread t = { .state = SYSINFO_WAITING };
    char *text = printed(SYSINFO_RECORD_EXCEPTION, &e, 1, true);

    assert_non_null(strstr(text, "\"hot\": true"));
    free(text);
    text = printed(SYSINFO_RECORD_THREAD, &t, 1, true);
    assert_non_null(strstr(text, "\"state\": \"waiting\""));
    free(text);
}

static void tables(void **state UNUSED)
{
    struct sysinfo_load load = { 55706, 0, 65535, 3, 12 }; // 0.85
    struct sysinfo_kernel k[2] = {
        { .name = "memory", .cycles = 12, .calls = 3 },
        { .cycles = 1 },
    };
    memcpy(k[1].name, "0123456789abcdef", sizeof(k[1].name)); // without a NUL
    k[1].name[1] = '\033';

    expect_printed(SYSINFO_RECORD_LOAD, &load, 1, false,
                   "Field     Value  Unit  Meaning\n"
                   "one        0.85        average over a minute\n"
                   "five       0.00        average over five minutes\n"
                   "fifteen    1.00        average over 15 minutes\n"
                   "runnable      3        threads at the last update\n"
                   "updates      12        one every 5 s since the start\n");
    expect_printed(SYSINFO_RECORD_KERNEL, k, 2, false,
                   "name              cycles  calls\n"
                   "memory                12      3\n"
                   "0?23456789abcdef       1      0\n");
    expect_printed(SYSINFO_RECORD_KERNEL, k, 0, false, "name  cycles  calls\n");
}

// ---- for tools

static void conversions(void **state UNUSED)
{
    u32 id = 7;

    assert_int_equal(sysinfo_milliseconds(0, 1000), 0);
    assert_int_equal(sysinfo_milliseconds(5, 0), 0);
    assert_int_equal(sysinfo_milliseconds(2300000000, 2300000000), 1000);
    assert_int_equal(sysinfo_milliseconds(2299999999, 2300000000), 999);
    // A century at 5 GHz does not overflow.
    assert_int_equal(
        sysinfo_milliseconds(5000000000ull * 3155760000, 5000000000ull),
        3155760000000ull);
    assert_int_equal(sysinfo_hundredths(65536), 100);
    assert_int_equal(sysinfo_hundredths(327), 0); // 0.00499
    assert_int_equal(sysinfo_hundredths(328), 1); // 0.0050049
    assert_int_equal(sysinfo_hundredths(UINT32_MAX), 6553600);
    assert_true(sysinfo_parse_task("-t", "0", &id) && id == 0);
    assert_true(sysinfo_parse_task("-t", "4294967294", &id));
    const char *const wrong[] = { "",   "x",  "-1",         "+1",
                                  " 1", "1x", "4294967295", "99999999999999" };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_false(sysinfo_parse_task("-t", wrong[i], &id));
}

// On the host, whose kernel is not Strobe.
static void elsewhere(void **state UNUSED)
{
    struct sysinfo_load load;
    uint64_t value;
    size_t n = 1;

    assert_int_equal(sysinfo_get_type("system"), -1);
    assert_int_equal(errno, ENOSYS);
    assert_null(sysinfo_read_task("system.tasks", &n));
    assert_int_equal(n, 0);
    assert_int_equal(errno, ENOSYS);
    assert_int_equal(sysinfo_get_load("system.load", &load), -1);
    assert_int_equal(sysinfo_read_value("x", &value), -1);
    assert_null(sysinfo_read_keys(""));
    assert_int_equal(errno, ENOSYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),  cmocka_unit_test(pattern_with_nul),
        cmocka_unit_test(layouts),   cmocka_unit_test(names),
        cmocka_unit_test(json),      cmocka_unit_test(json_of_states),
        cmocka_unit_test(tables),    cmocka_unit_test(conversions),
        cmocka_unit_test(elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
