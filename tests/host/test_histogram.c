// The output of the address-bin profiler, character by character, and the
// kernel's bins.
//
// link: user/profile/histogram.c kernel/profile/bins.c
#include "test.h"

#include "kernel/profile/bins.h"
#include "user/profile/histogram.h"

#define STARS62 "**************************************************************"

static struct bins bins;

static char *drawn(uint32_t rows, uint32_t origin)
{
    static char *text;
    size_t size;
    struct prof_data data;

    free(text);
    FILE *out = open_memstream(&text, &size);
    bins_read(&bins, &data);
    histogram_print(out, "./myprog", &data, rows, origin);
    fclose(out);
    return text;
}

// ---- bins

static void geometry(void **state UNUSED)
{
    static const struct {
        u32 length, size, used;
    } cases[] = {
        // those of the assignment
        { 40000, 40, 1000 },
        { 1025, 2, 513 },
        { 200, 1, 200 },
        // and at the edges
        { 1, 1, 1 },
        { 1023, 1, 1023 },
        { 1024, 1, 1024 },
        { 2048, 2, 1024 },
        { 2049, 3, 683 },
        { 0xffffffff, 0x400000, 1024 },
    };

    for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
        bins_init(&bins, 0, cases[i].length - 1);
        assert_int_equal(bins.size, cases[i].size);
        assert_int_equal(bins.data.bins_used, cases[i].used);
        assert_true(bins_add(&bins, cases[i].length - 1, 3));
        assert_int_equal(bins.data.bins[cases[i].used - 1], 3);
    }
    bins_init(&bins, 0, 0xffffffff); // the whole address space: 2^32 bytes
    assert_int_equal(bins.size, 0x400000);
    assert_int_equal(bins.data.bins_used, 1024);
}

static void every_address_has_its_bin(void **state UNUSED)
{
    for (u32 round = 0; round < 300; round++) {
        u32 low = random_below(0xfffff000), length = 1 + random_below(5000);
        u32 high = low + MIN(length - 1, 0xffffffff - low);
        bins_init(&bins, low, high);
        u64 sum = 0;
        for (u64 pc = low; pc <= high; pc++) {
            assert_true(bins_add(&bins, (u32)pc, 1));
            assert_int_equal(bins.data.bins[(pc - low) / bins.size],
                             (pc - low) % bins.size + 1);
        }
        // Addresses outside, on either side, are not counted.
        assert_true(bins_add(&bins, low - 1, 1));
        assert_true(bins_add(&bins, high + 1, 1));
        for (u32 i = 0; i < PROF_BINS; i++) {
            sum += bins.data.bins[i];
            assert_true(i < bins.data.bins_used || bins.data.bins[i] == 0);
        }
        assert_int_equal(sum, (u64)high - low + 1);
    }
}

static void full(void **state UNUSED)
{
    bins_init(&bins, 100, 199);
    assert_true(bins_add(&bins, 100, 0xfffffffe));
    assert_true(bins_add(&bins, 101, 1));
    assert_false(bins_add(&bins, 100, 1));
    assert_int_equal(bins.data.bins[0], 0xffffffff);
    assert_false(bins_add(&bins, 100, 5)); // and stays saturated
    assert_int_equal(bins.data.bins[0], 0xffffffff);
    assert_false(bins_add(&bins, 101, 0xffffffff));
    bins_init(&bins, 100, 199);
    assert_int_equal(bins.data.bins[0], 0);
}

// ---- output

static void a_whole_one(void **state UNUSED)
{
    bins_init(&bins, 0x3a40, 0xb2ff);
    assert_int_equal(bins.size, 0x1f);
    bins_add(&bins, 0x3a40, 50);
    bins_add(&bins, 0x7000, 100);
    bins_add(&bins, 0xb2ff, 25);
    bins_add(&bins, 0xb2ff, 25);
    // 998 bins, 250 a row, 248 in the last one.
    assert_string_equal(
        drawn(4, 0),
        "./myprog\n"
        "                  0%........................................."
        "................50%\n"
        "3A40-5885 (25%) : *******************************\n"
        "5886-76CB (50%) : " STARS62 "\n"
        "76CC-9511 (00%) : \n"
        "9512-B2FF (25%) : *******************************\n");
}

static void hundred_percent(void **state UNUSED)
{
    bins_init(&bins, 0, 0x3ff);
    bins_add(&bins, 0x3fb, 7);
    assert_string_equal(
        drawn(2, 0),
        "./myprog\n"
        "                  0%........................................."
        "...............100%\n"
        "0000-01FF (00%) : \n"
        "0200-03FF (100%): " STARS62 "\n");
    // Also by rounding: 199 of 200.
    bins_init(&bins, 0, 0x3ff);
    bins_add(&bins, 0x3fb, 199);
    bins_add(&bins, 0, 1);
    assert_string_equal(
        drawn(2, 0),
        "./myprog\n"
        "                  0%........................................."
        "...............100%\n"
        "0000-01FF (01%) : \n"
        "0200-03FF (100%): " STARS62 "\n");
}

static void nothing_at_all(void **state UNUSED)
{
    bins_init(&bins, 0x10, 0x11);
    assert_string_equal(
        drawn(5, 0),
        "./myprog\n"
        "                  0%........................................."
        ".................0%\n"
        "0010-0010 (00%) : \n"
        "0011-0011 (00%) : \n");
}

static void single_digit(void **state UNUSED)
{
    bins_init(&bins, 0, 99);
    for (u32 i = 0; i < 100; i++)
        bins_add(&bins, i, i == 50 ? 7 : 1);
    const char *text = drawn(100, 0);
    const char *scale = strchr(text, '\n') + 1;
    assert_int_equal(strcspn(scale, "\n"), 80);
    assert_memory_equal(scale + 78, "7%\n", 3);
    assert_non_null(strstr(text, "\n0032-0032 (07%) : " STARS62 "\n"));
    // 62 / 7 = 8.86
    assert_non_null(strstr(text, "\n0063-0063 (01%) : *********\n"));
}

// Longer addresses move all columns by the same width.
static void wide_addresses(void **state UNUSED)
{
    bins_init(&bins, 0x8049000, 0x80493ff);
    bins_add(&bins, 0x8049000, 1);
    assert_string_equal(
        drawn(1, 0),
        "./myprog\n"
        "                        0%........................................."
        "...............100%\n"
        "8049000-80493FF (100%): " STARS62 "\n");
    assert_string_equal(
        drawn(1, 0x8049000),
        "./myprog\n"
        "                  0%........................................."
        "...............100%\n"
        "0000-03FF (100%): " STARS62 "\n");
}

static u32 lines(const char *text)
{
    u32 n = 0;

    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void rows(void **state UNUSED)
{
    bins_init(&bins, 0, 799); // the assignment's 800 bins in 30 rows
    const char *text = drawn(30, 0);
    assert_int_equal(lines(text), 32);
    assert_non_null(strstr(text, "\n0000-001A ("));
    assert_non_null(strstr(text, "\n030F-031F (")); // 17 bins
    assert_int_equal(lines(drawn(800, 0)), 802);
    assert_int_equal(lines(drawn(801, 0)), 802);
    assert_int_equal(lines(drawn(4000000000u, 0)), 802);
    assert_int_equal(lines(drawn(1, 0)), 3);
    // 10 bins in 6 rows: two bins a row, so there are only 5 rows.
    bins_init(&bins, 0, 9);
    text = drawn(6, 0);
    assert_int_equal(lines(text), 7);
    assert_non_null(strstr(text, "\n0008-0009 ("));
    // Nothing has been profiled: no rows.
    memset(&bins, 0, sizeof(bins));
    assert_int_equal(lines(drawn(5, 0)), 2);
}

// Random counts: all lines are well-formed, and contain all ticks.
static void at_random(void **state UNUSED)
{
    for (u32 round = 0; round < 500; round++) {
        u32 low = random_below(50000), want = 1 + random_below(1100);
        bins_init(&bins, low, low + random_below(15000));
        for (u32 i = 0; i < bins.data.bins_used; i++) {
            if (random_below(3) == 0)
                bins.data.bins[i] = (u32)random_u64() >> random_below(32);
        }
        char *text = drawn(want, 0), *line = strtok(text, "\n");
        u32 next = low, n = 0, full_rows = 0, sum = 0;
        assert_string_equal(line, "./myprog");
        line = strtok(NULL, "\n");
        assert_int_equal(strlen(line), 80);
        while ((line = strtok(NULL, "\n")) != NULL) {
            unsigned start, end, percent;
            assert_int_equal(
                sscanf(line, "%4X-%4X (%u%%)", &start, &end, &percent), 3);
            assert_memory_equal(line + 16, ": ", 2);
            assert_int_equal(strspn(line + 18, "*"), strlen(line + 18));
            assert_true(strlen(line) <= 80);
            assert_int_equal(start, next);
            assert_true(end >= start && end <= bins.data.high);
            next = end + 1;
            n++;
            sum += percent;
            full_rows += strlen(line) == 80;
        }
        assert_int_equal(next, bins.data.high + 1);
        assert_true(n <= want);
        assert_true(sum == 0 || full_rows > 0);
        assert_true(sum <= 100 + n / 2 + 1);
    }
}

static void ranges(void **state UNUSED)
{
    static const char *const bad[] = {
        "",
        "-",
        "1",
        "1-",
        "-1",
        "2-1",
        "5-5",
        "1-2-3",
        "1-2x",
        " 1-2",
        "1- 2",
        "+1-2",
        "1--2",
        "g-h",
        "0x-1",
        "1-100000000",
        "100000000-200000000",
        "99999999999999999999-1",
        "1_2",
        "1-2 ",
    };
    uint32_t start, end;

    assert_true(histogram_parse_range("3A40-B2FF", &start, &end));
    assert_int_equal(start, 0x3a40);
    assert_int_equal(end, 0xb2ff);
    assert_true(histogram_parse_range("0x8049abc-0x8049abd", &start, &end));
    assert_int_equal(start, 0x8049abc);
    assert_true(histogram_parse_range("0-ffffffff", &start, &end));
    assert_int_equal(end, 0xffffffff);
    for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
        if (histogram_parse_range(bad[i], &start, &end))
            fail_msg("\"%s\" was accepted as a range", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(geometry),
        cmocka_unit_test(every_address_has_its_bin),
        cmocka_unit_test(full),
        cmocka_unit_test(a_whole_one),
        cmocka_unit_test(hundred_percent),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(single_digit),
        cmocka_unit_test(wide_addresses),
        cmocka_unit_test(rows),
        cmocka_unit_test(at_random),
        cmocka_unit_test(ranges),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
