// The Gregorian calendar, in UTC: seconds since 1970 and dates.
#pragma once

#include "lib/types.h"

#define SECONDS_PER_DAY 86400u
#define DATE_YEAR_MIN 1970u
#define DATE_YEAR_MAX 9999u

struct date {
    u32 year;       // in full
    u32 month, day; // from 1 on
    u32 hour, minute, second;
};

// False for what no calendar has (February 30, 24:00), and outside the years
// above. Leap seconds are not known.
bool date_is_valid(const struct date *d);
// Of a valid date.
s64 date_to_seconds(const struct date *d);
// False outside the years above.
bool seconds_to_date(s64 seconds, struct date *d);
// 0 is Sunday. Of seconds >= 0.
u32 weekday_of(s64 seconds);
// From 0, January 1, on. Of a valid date.
u32 day_of_year(const struct date *d);
