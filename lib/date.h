// The Gregorian calendar, in UTC: seconds since 1970 and dates.
#pragma once

#include "lib/types.h"

#define SECONDS_PER_DAY 86400u
#define DATE_YEAR_MIN 1970u
#define DATE_YEAR_MAX 9999u

struct date {
    u32 year;       // e.g. 2026
    u32 month, day; // from 1
    u32 hour, minute, second;
};

// False for impossible dates (February 30, 24:00), and outside the years above.
// There are no leap seconds.
bool date_is_valid(const struct date *d);
// The date must be valid.
s64 date_to_seconds(const struct date *d);
// False outside the years above.
bool seconds_to_date(s64 seconds, struct date *d);
// 0 is Sunday. For seconds >= 0.
u32 weekday_of(s64 seconds);
// From 0, January 1. The date must be valid.
u32 day_of_year(const struct date *d);
