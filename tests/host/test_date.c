// Dates against the host's calendar, for every day of the range; the RTC's
// registers in all their formats.
// link: arch/i386/clock/rtc_format.c
#include "arch/i386/clock/rtc_format.h"
#include "lib/date.h"
#include "test.h"

#define LAST_DAY 2932896 // 9999-12-31

static void expect_date(s64 seconds)
{
    time_t t = (time_t)seconds;
    struct tm tm;
    struct date d;
    gmtime_r(&t, &tm);
    assert_true(seconds_to_date(seconds, &d));
    assert_int_equal(d.year, tm.tm_year + 1900);
    assert_int_equal(d.month, tm.tm_mon + 1);
    assert_int_equal(d.day, tm.tm_mday);
    assert_int_equal(d.hour, tm.tm_hour);
    assert_int_equal(d.minute, tm.tm_min);
    assert_int_equal(d.second, tm.tm_sec);
    assert_int_equal(weekday_of(seconds), tm.tm_wday);
    assert_int_equal(day_of_year(&d), tm.tm_yday);
    assert_true(date_is_valid(&d));
    assert_true(date_to_seconds(&d) == seconds);
}

static void every_day(void **state)
{
    (void)state;
    for (s64 day = 0; day <= LAST_DAY; day++)
        expect_date(day * SECONDS_PER_DAY +
                    (u32)random_u64() % SECONDS_PER_DAY);
}

static void every_second_of_a_day(void **state)
{
    (void)state;
    s64 day = (s64)((u32)random_u64() % LAST_DAY) * SECONDS_PER_DAY;
    for (s64 s = 0; s < SECONDS_PER_DAY; s++)
        expect_date(day + s);
}

static void outside(void **state)
{
    (void)state;
    struct date d;
    s64 end = (LAST_DAY + 1ll) * SECONDS_PER_DAY;
    assert_false(seconds_to_date(-1, &d));
    assert_true(seconds_to_date(end - 1, &d));
    assert_false(seconds_to_date(end, &d));
    assert_false(seconds_to_date(INT64_MAX, &d));
    assert_false(seconds_to_date(INT64_MIN, &d));
    static const struct date bad[] = {
        { 1969, 12, 31, 23, 59, 59 }, { 10000, 1, 1, 0, 0, 0 },
        { 2000, 0, 1, 0, 0, 0 },      { 2000, 13, 1, 0, 0, 0 },
        { 2000, 1, 0, 0, 0, 0 },      { 2000, 1, 32, 0, 0, 0 },
        { 2000, 2, 30, 0, 0, 0 },     { 2001, 2, 29, 0, 0, 0 },
        { 2100, 2, 29, 0, 0, 0 },     { 2000, 4, 31, 0, 0, 0 },
        { 2000, 1, 1, 24, 0, 0 },     { 2000, 1, 1, 0, 60, 0 },
        { 2000, 1, 1, 0, 0, 60 },     { ~0u, 1, 1, 0, 0, 0 },
        { 2000, ~0u, ~0u, 0, 0, 0 },
    };
    for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(date_is_valid(&bad[i]));
    static const struct date good = { 2000, 2, 29, 23, 59, 59 };
    assert_true(date_is_valid(&good));
}

static bool same(const struct date *a, const struct date *b)
{
    return !memcmp(a, b, sizeof(*a));
}

static void registers_round_trip(void **state)
{
    (void)state;
    for (s64 day = 0; day <= LAST_DAY; day += 1 + (u32)random_u64() % 3) {
        struct date d, back;
        s64 seconds =
            day * SECONDS_PER_DAY + (u32)random_u64() % SECONDS_PER_DAY;
        assert_true(seconds_to_date(seconds, &d));
        struct rtc_registers r = {
            .b = (u32)random_u64() & (RTC_B_BINARY | RTC_B_24_HOURS),
        };
        u8 b = r.b;
        assert_true(rtc_encode(&d, true, &r));
        assert_int_equal(r.b, b);
        assert_int_equal(r.weekday, weekday_of(seconds) + 1);
        assert_true(rtc_decode(&r, &back) && same(&d, &back));
        bool near = d.year >= 1970 && d.year < 2070;
        assert_int_equal(rtc_encode(&d, false, &r), near);
        if (near)
            assert_true(rtc_decode(&r, &back) && same(&d, &back));
    }
}

// Every hour in each format.
static void hours(void **state)
{
    (void)state;
    static const u8 bcd_12[24] = {
        0x12, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x10, 0x11,
        0x92, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x90, 0x91,
    };
    for (u32 hour = 0; hour < 24; hour++) {
        struct date d = { 2026, 11, 20, hour, 59, 8 };
        struct rtc_registers r = { .b = 0 };
        assert_true(rtc_encode(&d, true, &r));
        assert_int_equal(r.hour, bcd_12[hour]);
        assert_int_equal(r.minute, 0x59);
        assert_int_equal(r.second, 0x08);
        assert_int_equal(r.day, 0x20);
        assert_int_equal(r.month, 0x11);
        assert_int_equal(r.year, 0x26);
        assert_int_equal(r.century, 0x20);
        assert_int_equal(r.weekday, 6); // a Friday
        r = (struct rtc_registers){ .b = RTC_B_BINARY };
        assert_true(rtc_encode(&d, true, &r));
        assert_int_equal(r.hour,
                         (hour % 12 ? hour % 12 : 12) | (hour >= 12 ? 128 : 0));
        r = (struct rtc_registers){ .b = RTC_B_24_HOURS };
        assert_true(rtc_encode(&d, true, &r));
        assert_int_equal(r.hour, hour / 10 * 16 + hour % 10);
    }
}

// Any register values give no date or a valid one.
static void nonsense(void **state)
{
    (void)state;
    struct date d;
    struct rtc_registers absent, dead = { .b = 0 };
    memset(&absent, 0xff, sizeof(absent));
    assert_false(rtc_decode(&absent, &d));
    assert_false(rtc_decode(&dead, &d));
    u32 valid = 0;
    for (u32 i = 0; i < 2000000; i++) {
        struct rtc_registers r;
        u8 *bytes = (u8 *)&r;
        for (u32 j = 0; j < sizeof(r); j++)
            bytes[j] = (u32)random_u64() & (i % 2 ? 0xff : 0x1f);
        if (rtc_decode(&r, &d)) {
            assert_true(date_is_valid(&d));
            valid++;
        }
    }
    assert_true(valid > 1000);
}

// An invalid century, as after a dead battery, is ignored.
static void centuries(void **state)
{
    (void)state;
    static const struct {
        u8 century, year;
        u32 is;
    } cases[] = {
        { 0, 0x69, 2069 },    { 0, 0x70, 1970 },    { 0x19, 0x99, 1999 },
        { 0x20, 0x00, 2000 }, { 0x20, 0x99, 2099 }, { 0x21, 0x38, 2138 },
        { 0x01, 0x26, 2026 }, { 0xff, 0x26, 2026 }, { 0x1f, 0x80, 1980 },
        { 0x99, 0x99, 9999 },
    };
    for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
        struct date d;
        struct rtc_registers r = {
            0, 0, 0, 0, 1, 1, cases[i].year, cases[i].century, RTC_B_24_HOURS
        };
        assert_true(rtc_decode(&r, &d));
        assert_int_equal(d.year, cases[i].is);
    }
}

static void seconds_after(void **state UNUSED)
{
    assert_int_equal(rtc_second_after(0x58, 5, 0), 0x03);
    assert_int_equal(rtc_second_after(0x09, 1, 0), 0x10);
    assert_int_equal(rtc_second_after(59, 59, RTC_B_BINARY), 58);
    assert_int_equal(rtc_second_after(7, 5, RTC_B_BINARY), 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day), cmocka_unit_test(every_second_of_a_day),
        cmocka_unit_test(outside),   cmocka_unit_test(registers_round_trip),
        cmocka_unit_test(hours),     cmocka_unit_test(nonsense),
        cmocka_unit_test(centuries), cmocka_unit_test(seconds_after),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
