#include "lib/date.h"

#include "lib/assert.h"

#define DAYS_PER_400_YEARS 146097u
#define DAYS_TO_1970 719468u // since March 1 of the year 0
#define FIRST_WEEKDAY 4u     // 1970-01-01 was a Thursday

static bool is_leap(u32 year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static u32 days_in_month(u32 year, u32 month)
{
    assert(month >= 1 && month <= 12);
    static const u8 days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return days[month - 1] + (month == 2 && is_leap(year));
}

bool date_is_valid(const struct date *d)
{
    return d->year >= DATE_YEAR_MIN && d->year <= DATE_YEAR_MAX &&
           d->month >= 1 && d->month <= 12 && d->day >= 1 &&
           d->day <= days_in_month(d->year, d->month) && d->hour < 24 &&
           d->minute < 60 && d->second < 60;
}

// Years are counted from March, so that the leap day is the last of its year;
// 400 years have 146097 days, and the months from March on have a regular
// pattern.
static u32 days_since_1970(const struct date *d)
{
    u32 year = d->month <= 2 ? d->year - 1 : d->year;
    u32 month = (d->month + 9) % 12;
    u32 day = (153 * month + 2) / 5 + d->day - 1;
    return 365 * year + year / 4 - year / 100 + year / 400 + day - DAYS_TO_1970;
}

s64 date_to_seconds(const struct date *d)
{
    assert(date_is_valid(d));
    return (s64)days_since_1970(d) * SECONDS_PER_DAY + d->hour * 3600 +
           d->minute * 60 + d->second;
}

static void days_to_date(u32 days, struct date *d)
{
    u32 era = (days + DAYS_TO_1970) / DAYS_PER_400_YEARS;
    u32 rest = (days + DAYS_TO_1970) % DAYS_PER_400_YEARS;
    u32 year = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
    rest -= 365 * year + year / 4 - year / 100;
    u32 month = (5 * rest + 2) / 153;
    d->day = rest - (153 * month + 2) / 5 + 1;
    d->month = month < 10 ? month + 3 : month - 9;
    d->year = era * 400 + year + (d->month <= 2);
}

bool seconds_to_date(s64 seconds, struct date *d)
{
    static const struct date end = { DATE_YEAR_MAX, 12, 31, 23, 59, 59 };
    if (seconds < 0 || seconds > date_to_seconds(&end))
        return false;
    u32 rest = (u32)(seconds % SECONDS_PER_DAY);
    days_to_date((u32)(seconds / SECONDS_PER_DAY), d);
    d->hour = rest / 3600;
    d->minute = rest / 60 % 60;
    d->second = rest % 60;
    assert(date_is_valid(d));
    return true;
}

u32 weekday_of(s64 seconds)
{
    assert(seconds >= 0);
    return (u32)((seconds / SECONDS_PER_DAY + FIRST_WEEKDAY) % 7);
}

u32 day_of_year(const struct date *d)
{
    assert(date_is_valid(d));
    struct date first = { d->year, 1, 1, 0, 0, 0 };
    return days_since_1970(d) - days_since_1970(&first);
}
