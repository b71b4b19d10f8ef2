// The wall clock in the MC146818-compatible RTC, taken as UTC.
//
// `rtc_lock` (a spinlock, held for up to some milliseconds with interrupts on)
// keeps a writer apart from readers: they need several CMOS accesses.
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/clock/clock_private.h"
#include "kernel/errno.h"
#include "kernel/sync/spinlock.h"

enum {
    RTC_SECONDS = 0x00,
    RTC_MINUTES = 0x02,
    RTC_HOURS = 0x04,
    RTC_DAY = 0x07,
    RTC_MONTH = 0x08,
    RTC_YEAR = 0x09,
    RTC_A = 0x0a,
    RTC_B = 0x0b,
};

#define A_UPDATING 0x80 // time is not readable; an update takes 2 ms at most
#define B_SET 0x80      // stops updates
#define B_BINARY 0x04
#define B_24_HOURS 0x02
#define HOUR_PM 0x80

#define UPDATE_LIMIT_NS (10 * NSEC_PER_MSEC)
#define READ_ATTEMPTS 8
#define SECONDS_PER_DAY 86400
#define YEAR_MIN 1970
#define YEAR_MAX_WITHOUT_CENTURY 2069 // two digits: 70-99 are 19xx

struct date {
    u32 year, month, day, hour, minute, second;
};

static struct spinlock rtc_lock = SPINLOCK_INIT("rtc");

// Days since 1970-01-01 in the Gregorian calendar. Years are counted from
// March, so that the leap day is a year's last; 400 of them have 146097 days.
static s64 days_from_date(u32 year, u32 month, u32 day)
{
    u32 y = month <= 2 ? year - 1 : year;
    u32 month_from_march = (month + 9) % 12;
    u32 day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    u32 days = 365 * y + y / 4 - y / 100 + y / 400 + day_of_year;
    return (s64)days - 719468; // 0000-03-01 to 1970-01-01
}

static void date_from_days(u32 days, struct date *d)
{
    u32 z = days + 719468;
    u32 era = z / 146097, day_of_era = z % 146097;
    u32 year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
                       day_of_era / 146096) /
                      365;
    u32 day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    u32 month_from_march = (5 * day_of_year + 2) / 153;
    d->day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    d->month =
        month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    d->year = era * 400 + year_of_era + (d->month <= 2);
}

static u32 decode(u8 value, bool binary)
{
    return binary ? value : (value >> 4) * 10u + (value & 0xf);
}

static u8 encode(u32 value, bool binary)
{
    return (u8)(binary ? value : (value / 10) << 4 | value % 10);
}

static void wait_for_update(void)
{
    u64 limit = clock_now_ns() + UPDATE_LIMIT_NS;
    while (cmos_read(RTC_A) & A_UPDATING && clock_now_ns() < limit)
        cpu_relax();
}

static u32 decode_hour(u8 value, u8 b)
{
    u32 hour = decode(value & ~HOUR_PM, b & B_BINARY);
    if (b & B_24_HOURS)
        return hour;
    return hour % 12 + (value & HOUR_PM ? 12 : 0);
}

static u8 encode_hour(u32 hour, u8 b)
{
    if (b & B_24_HOURS)
        return encode(hour, b & B_BINARY);
    u8 value = encode(hour % 12 ? hour % 12 : 12, b & B_BINARY);
    return value | (hour >= 12 ? HOUR_PM : 0);
}

static struct date read_date(void)
{
    wait_for_update();
    u8 b = cmos_read(RTC_B);
    bool binary = b & B_BINARY;
    struct date d = {
        .second = decode(cmos_read(RTC_SECONDS), binary),
        .minute = decode(cmos_read(RTC_MINUTES), binary),
        .hour = decode_hour(cmos_read(RTC_HOURS), b),
        .day = decode(cmos_read(RTC_DAY), binary),
        .month = decode(cmos_read(RTC_MONTH), binary),
        .year = decode(cmos_read(RTC_YEAR), binary),
    };
    u32 century = 0;
    if (acpi_facts.century)
        century = decode(cmos_read(acpi_facts.century), binary);
    if (century < 19)
        century = d.year >= 70 ? 19 : 20;
    d.year += 100 * century;
    return d;
}

static bool same(const struct date *a, const struct date *b)
{
    return a->second == b->second && a->minute == b->minute &&
           a->hour == b->hour && a->day == b->day && a->month == b->month &&
           a->year == b->year;
}

// What an absent or dead chip gives is no date.
static bool valid(const struct date *d)
{
    return d->second < 60 && d->minute < 60 && d->hour < 24 && d->day >= 1 &&
           d->day <= 31 && d->month >= 1 && d->month <= 12 &&
           d->year >= YEAR_MIN;
}

// The chip may begin an update between two accesses (an interrupt came): a date
// counts when it is read twice.
s64 rtc_read_seconds(void)
{
    spin_lock(&rtc_lock);
    struct date d = read_date(), again = read_date();
    for (u32 i = 0; i < READ_ATTEMPTS && !same(&d, &again); i++) {
        d = again;
        again = read_date();
    }
    spin_unlock(&rtc_lock);
    if (!valid(&again))
        return 0;
    s64 days = days_from_date(again.year, again.month, again.day);
    return days * SECONDS_PER_DAY + again.hour * 3600 + again.minute * 60 +
           again.second;
}

static void write_date(const struct date *d)
{
    u8 b = cmos_read(RTC_B);
    bool binary = b & B_BINARY;
    cmos_write(RTC_B, b | B_SET);
    cmos_write(RTC_SECONDS, encode(d->second, binary));
    cmos_write(RTC_MINUTES, encode(d->minute, binary));
    cmos_write(RTC_HOURS, encode_hour(d->hour, b));
    cmos_write(RTC_DAY, encode(d->day, binary));
    cmos_write(RTC_MONTH, encode(d->month, binary));
    cmos_write(RTC_YEAR, encode(d->year % 100, binary));
    if (acpi_facts.century)
        cmos_write(acpi_facts.century, encode(d->year / 100, binary));
    cmos_write(RTC_B, b & ~B_SET);
}

int rtc_write_seconds(s64 seconds)
{
    u32 year_max = acpi_facts.century ? 9999 : YEAR_MAX_WITHOUT_CENTURY;
    s64 end = days_from_date(year_max + 1, 1, 1) * SECONDS_PER_DAY;
    if (seconds < 0 || seconds >= end)
        return -EINVAL;
    u32 rest = (u32)(seconds % SECONDS_PER_DAY);
    struct date d = { .hour = rest / 3600,
                      .minute = rest / 60 % 60,
                      .second = rest % 60 };
    date_from_days((u32)(seconds / SECONDS_PER_DAY), &d);
    spin_lock(&rtc_lock);
    write_date(&d);
    spin_unlock(&rtc_lock);
    return 0;
}
